// The jars of the Kafka broker, fetched once from Maven Central into the checkout's .cache folder.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cachePath, fetchOnce, isCached } from './download-cache.ts'
import { runToEnd } from './server-process.ts'
import { chosenKafka, kafkaReleases } from './server-versions.ts'

export const kafkaVersion = kafkaReleases.get(chosenKafka())!

const run = promisify(execFile)
const oldestJava = 17
// Every JVM would leave a folder with statistics in the temporary folder.
const noStatistics = '-XX:-UsePerfData'
const mavenEnv = { MAVEN_OPTS: `${process.env['MAVEN_OPTS'] ?? ''} ${noStatistics}` }
const pom = fileURLToPath(new URL('kafka/pom.xml', import.meta.url))
const jars = cachePath(`kafka-${kafkaVersion}/jars`)

/** Why this machine cannot run a broker of its own, or null when it can. */
export async function explainMissingJava(): Promise<string | null> {
  const java = await run('java', [noStatistics, '-version']).catch(() => undefined)
  const major = Number(/version "(\d+)/.exec(java?.stderr ?? '')?.[1] ?? 0)
  if (!java) return `java is not installed (Kafka needs Java ${oldestJava} or newer)`
  if (major < oldestJava) return `java is too old (Kafka needs Java ${oldestJava}, found ${major})`
  if (await isCached(jars)) return null
  return run('mvn', ['--version'], { env: { ...process.env, ...mavenEnv } }).then(
    () => null,
    () => 'mvn is not installed (it fetches the Kafka jars)',
  )
}

/** The folder with the jars; fetches them first if this checkout has none. */
export function fetchKafkaJars(): Promise<string> {
  return fetchJars(jars, pom, { 'kafka.version': kafkaVersion })
}

/** Fetches the jars that a pom names, once, into that folder. */
export function fetchJars(
  path: string,
  pomFile: string,
  versions: Readonly<Record<string, string>>,
): Promise<string> {
  return fetchOnce(path, async (folder) => {
    const fetched = join(folder.path, 'jars')
    const goal = ['dependency:copy-dependencies', `-DoutputDirectory=${fetched}`]
    const properties = Object.entries(versions).map(([name, version]) => `-D${name}=${version}`)
    await runToEnd(folder, 'mvn', ['-B', '-q', '-f', pomFile, ...properties, ...goal], {
      endSignal: 'KILL',
      env: mavenEnv,
    })
    return fetched
  })
}
