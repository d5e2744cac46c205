// The versions of the servers that the tests can run on, and the exact release that stands for each. Chosen
// by POSTGRES_VERSION and KAFKA_VERSION; `npm run test:matrix` goes through them.

/** By major version; null is the release that package.json installs. The others are fetched when asked for. */
export const postgresReleases = new Map<string, string | null>([
  ['14', '14.23.0-beta.17'],
  ['15', '15.18.0-beta.17'],
  ['16', '16.14.0-beta.17'],
  ['17', '17.10.0-beta.17'],
  ['18', null],
])

export const kafkaReleases = new Map<string, string>([
  ['3.9', '3.9.2'],
  ['4.3', '4.3.1'],
])

export const defaultPostgres = '18'
export const defaultKafka = '4.3'

export const chosenPostgres = () => choose('POSTGRES_VERSION', postgresReleases, defaultPostgres)
export const chosenKafka = () => choose('KAFKA_VERSION', kafkaReleases, defaultKafka)

function choose(variable: string, releases: ReadonlyMap<string, unknown>, otherwise: string) {
  return checkVersion(variable, process.env[variable] || otherwise, releases)
}

export function checkVersion(
  name: string,
  version: string,
  releases: ReadonlyMap<string, unknown>,
): string {
  if (releases.has(version)) return version
  throw new Error(`${name} must be one of ${[...releases.keys()].join(', ')}, got '${version}'`)
}
