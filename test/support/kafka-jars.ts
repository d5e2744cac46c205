// The jars of the Kafka broker, fetched once from Maven Central into the checkout's .cache folder. The
// folder gets its final name by one rename, so a download cut short is never taken for a complete one.
import { execFile } from 'node:child_process'
import { access, mkdir, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createOwnedFolder } from './owned-folder.ts'
import { runToEnd } from './server-process.ts'

export const kafkaVersion = '4.3.1'

const run = promisify(execFile)
const oldestJava = 17
// Every JVM would leave a folder with statistics in the temporary folder.
const noStatistics = '-XX:-UsePerfData'
const mavenEnv = { MAVEN_OPTS: `${process.env['MAVEN_OPTS'] ?? ''} ${noStatistics}` }
const pom = fileURLToPath(new URL('kafka/pom.xml', import.meta.url))
const jars = fileURLToPath(new URL(`../../.cache/kafka-${kafkaVersion}/jars`, import.meta.url))

/** Why this machine cannot run a broker of its own, or null when it can. */
export async function explainMissingJava(): Promise<string | null> {
  const java = await run('java', [noStatistics, '-version']).catch(() => undefined)
  const major = Number(/version "(\d+)/.exec(java?.stderr ?? '')?.[1] ?? 0)
  if (!java) return `java is not installed (Kafka needs Java ${oldestJava} or newer)`
  if (major < oldestJava) return `java is too old (Kafka needs Java ${oldestJava}, found ${major})`
  if (await haveJars()) return null
  return run('mvn', ['--version'], { env: { ...process.env, ...mavenEnv } }).then(
    () => null,
    () => 'mvn is not installed (it fetches the Kafka jars)',
  )
}

/** The folder with the jars; fetches them first if this checkout has none. */
export async function fetchKafkaJars(): Promise<string> {
  if (await haveJars()) return jars
  await mkdir(dirname(jars), { recursive: true })
  const folder = await createOwnedFolder('fetching-', dirname(jars))
  try {
    const fetched = join(folder.path, 'jars')
    const goal = ['dependency:copy-dependencies', `-DoutputDirectory=${fetched}`]
    await runToEnd(
      folder,
      'mvn',
      ['-B', '-q', '-f', pom, `-Dkafka.version=${kafkaVersion}`, ...goal],
      { endSignal: 'KILL', env: mavenEnv },
    )
    // Another process that was quicker leaves the same jars in place.
    await rename(fetched, jars).catch(async (error: unknown) => {
      if (!(await haveJars())) throw error
    })
  } finally {
    await folder.remove()
  }
  return jars
}

function haveJars(): Promise<boolean> {
  return access(jars).then(
    () => true,
    () => false,
  )
}
