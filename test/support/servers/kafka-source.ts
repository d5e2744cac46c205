// Decides where the tests find Kafka: a broker named in KAFKA_BROKERS, one of our own with Java, one in
// Docker, or none. On CI and in the matrix none is a failure, so that a green run never means "not tested".
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { isKafkaDemanded } from '../run/continuous-integration.ts'
import { findFreePort } from './free-port.ts'
import { explainMissingJava, fetchKafkaJars, kafkaVersion } from './kafka-jars.ts'
import { settingsFor, waitForBroker } from './kafka-node.ts'
import { type KafkaServer, startKafka } from './kafka-server.ts'
import { createOwnedFolder } from './owned-folder.ts'
import { runToEnd, spawnServer } from './server-process.ts'

/** A broker that tests may use but neither kill nor pause. */
export type ExternalKafka = {
  readonly managed: false
  readonly brokers: string[]
  stop(): Promise<void>
}

export type ResolvedKafka =
  | { server: KafkaServer | ExternalKafka; missing: null }
  | { server: null; missing: string }

const run = promisify(execFile)
const image = `apache/kafka:${kafkaVersion}`
const remedy = 'install Java 17 and Maven, start Docker or set KAFKA_BROKERS=host:port'

export async function resolveKafka(): Promise<ResolvedKafka> {
  const named = process.env['KAFKA_BROKERS']
  if (named) {
    const brokers = named.split(',').map((broker) => broker.trim())
    await waitForBroker(brokers)
    return { server: { managed: false, brokers, stop: async () => {} }, missing: null }
  }
  const noJava = (await explainMissingJava()) ?? (await explainMissingJars())
  if (!noJava) return { server: await startKafka(), missing: null }
  const noDocker = await explainMissingDocker()
  if (!noDocker) return { server: await startInDocker(), missing: null }

  const missing = `${noJava}, and ${noDocker}; ${remedy}`
  if (isKafkaDemanded()) throw new Error(`Kafka is missing: ${missing}`)
  return { server: null, missing }
}

/** Why a test cannot start a broker of its own to kill or pause it; a failure where none at all is one. */
export async function explainMissingOwnKafka(): Promise<string | null> {
  const noJava = await explainMissingJava()
  if (noJava === null) return null
  const missing = `${noJava}; install Java 17 and Maven`
  if (isKafkaDemanded()) throw new Error(`no broker that tests may kill: ${missing}`)
  return missing
}

async function explainMissingJars(): Promise<string | null> {
  return fetchKafkaJars().then(
    () => null,
    (error: unknown) => `the Kafka jars could not be fetched (${String(error)})`,
  )
}

async function explainMissingDocker(): Promise<string | null> {
  return run('docker', ['info'], { timeout: 10_000 }).then(
    () => null,
    () => 'docker info does not answer',
  )
}

// In the foreground: the docker command passes SIGTERM on to the container and ends with it, so the
// guardian of the folder reaches the container too.
async function startInDocker(): Promise<ExternalKafka> {
  const folder = await createOwnedFolder('aftercommit-kafka-')
  try {
    const port = await findFreePort()
    const settings: Record<string, string> = {
      ...settingsFor(1),
      'node.id': '1',
      listeners: 'PLAINTEXT://:9092,CONTROLLER://:9093',
      'advertised.listeners': `PLAINTEXT://127.0.0.1:${port}`,
      'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
      'inter.broker.listener.name': 'PLAINTEXT',
      'controller.quorum.voters': '1@localhost:9093',
    }
    // The image reads the setting a.b from the variable KAFKA_A_B.
    const environment = Object.entries(settings).flatMap(([name, value]) => [
      '-e',
      `KAFKA_${name.replaceAll('.', '_').toUpperCase()}=${value}`,
    ])
    const args = ['run', '--rm', '-p', `127.0.0.1:${port}:9092`, ...environment, image]
    await runToEnd(folder, 'docker', ['pull', '--quiet', image], { endSignal: 'TERM' })
    const server = await spawnServer(folder, 'docker', args, { endSignal: 'TERM' })
    const brokers = [`127.0.0.1:${port}`]
    await waitForBroker(brokers, server)
    const stop = async () => {
      server.signal('SIGTERM')
      await server.exited
      await folder.remove()
    }
    return { managed: false, brokers, stop }
  } catch (error) {
    await folder.remove()
    throw error
  }
}
