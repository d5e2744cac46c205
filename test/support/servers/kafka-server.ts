// A real single-node Apache Kafka of one's own, in KRaft mode and a temporary folder. It can be killed,
// paused and started again on the same ports and data, and may advertise the port of a proxy.
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Kafka, logLevel } from 'kafkajs'
import { findFreePort } from './free-port.ts'
import { fetchKafkaJars } from './kafka-jars.ts'
import { createOwnedFolder } from './owned-folder.ts'
import { runToEnd, type ServerProcess, spawnServer } from './server-process.ts'
import { waitUntil } from '../timing/wait-until.ts'

export type KafkaOptions = {
  /** @default a free port */
  port?: number
  /** The port that clients are told to connect to, when a proxy stands in front of `port`. */
  advertisedPort?: number
  /** Broker settings by name, such as `{ 'num.partitions': '1' }`. */
  settings?: Record<string, string>
  /** Flags of the JVM. @default a small heap and what starts quickly, not what is quick once it is warm */
  javaFlags?: readonly string[]
}

export type KafkaServer = {
  readonly managed: true
  /** Where clients connect; the advertised port if there is one. */
  readonly brokers: string[]
  /** Past any proxy, for the reader that checks what arrived. */
  readonly directBrokers: string[]
  readonly port: number
  /** The process id of the broker; another one after `start()`. */
  readonly pid: number
  /** Shuts down in order and deletes the data. */
  stop(): Promise<void>
  /** kill -9; the data stays. */
  kill(): Promise<void>
  /** Starts a killed broker again on the same ports and data. */
  start(): Promise<void>
  /** Freezes the process: connections stay open, nothing answers. */
  pause(): void
  resume(): void
}

const quickStart = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-XX:-UsePerfData']
const logFlags = [
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
  '-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info',
]

/** The settings of a broker that is alone and should be quick; addresses come on top. */
export const singleNodeSettings: Readonly<Record<string, string>> = {
  'process.roles': 'broker,controller',
  'node.id': '1',
  'controller.listener.names': 'CONTROLLER',
  'num.partitions': '3',
  'auto.create.topics.enable': 'true',
  'default.replication.factor': '1',
  'offsets.topic.num.partitions': '1',
  'offsets.topic.replication.factor': '1',
  'transaction.state.log.num.partitions': '1',
  'transaction.state.log.replication.factor': '1',
  'transaction.state.log.min.isr': '1',
  'share.coordinator.state.topic.replication.factor': '1',
  'share.coordinator.state.topic.min.isr': '1',
  'group.initial.rebalance.delay.ms': '0',
  'log.cleaner.dedupe.buffer.size': '4194304',
  // A killed broker may register again only when its old session ran out: 12 s with the default of 9 s.
  'broker.session.timeout.ms': '2000',
  'broker.heartbeat.interval.ms': '250',
}

export async function startKafka(options: KafkaOptions = {}): Promise<KafkaServer> {
  const jars = await fetchKafkaJars()
  const folder = await createOwnedFolder('aftercommit-kafka-')
  const properties = join(folder.path, 'server.properties')
  const { javaFlags = quickStart } = options
  const java = [...javaFlags, ...logFlags, `-Djava.io.tmpdir=${folder.path}`, '-cp', `${jars}/*`]
  const processOptions = { endSignal: 'KILL' } as const

  async function boot(directBrokers: string[]): Promise<ServerProcess> {
    const args = [...java, 'kafka.Kafka', properties]
    const server = await spawnServer(folder, 'java', args, processOptions)
    // One listener may answer while another still fails to bind, so an answer alone is not enough.
    await server.waitForOutput('Kafka Server started')
    await waitForBroker(directBrokers, server)
    return server
  }

  try {
    const [port, directPort, controllerPort] = await Promise.all([
      options.port ?? findFreePort(),
      findFreePort(),
      findFreePort(),
    ])
    const advertisedPort = options.advertisedPort ?? port
    const direct = `DIRECT://127.0.0.1:${directPort}`
    const settings: Record<string, string> = {
      ...singleNodeSettings,
      listeners: `CLIENT://127.0.0.1:${port},${direct},CONTROLLER://127.0.0.1:${controllerPort}`,
      'advertised.listeners': `CLIENT://127.0.0.1:${advertisedPort},${direct}`,
      'listener.security.protocol.map': 'CLIENT:PLAINTEXT,DIRECT:PLAINTEXT,CONTROLLER:PLAINTEXT',
      'inter.broker.listener.name': 'DIRECT',
      'controller.quorum.voters': `1@127.0.0.1:${controllerPort}`,
      'log.dirs': join(folder.path, 'data'),
      ...options.settings,
    }
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
    await writeFile(properties, lines.join(''))
    // With '=', as an id may begin with a dash.
    const clusterId = `--cluster-id=${randomBytes(16).toString('base64url')}`
    const format = ['format', clusterId, '-c', properties]
    await runToEnd(folder, 'java', [...java, 'kafka.tools.StorageTool', ...format], processOptions)
    const directBrokers = [`127.0.0.1:${directPort}`]
    let server = await boot(directBrokers)
    let stopped: Promise<void> | undefined

    async function end(signal: NodeJS.Signals): Promise<void> {
      server.signal(signal)
      server.signal('SIGCONT')
      await server.exited
    }

    return {
      managed: true,
      brokers: [`127.0.0.1:${advertisedPort}`],
      directBrokers,
      port,
      get pid() {
        return server.pid
      },
      stop() {
        stopped ??= end('SIGTERM').then(() => folder.remove())
        return stopped
      },
      kill: () => end('SIGKILL'),
      async start() {
        if (!server.running) server = await boot(directBrokers)
      },
      pause: () => server.signal('SIGSTOP'),
      resume: () => server.signal('SIGCONT'),
    }
  } catch (error) {
    await folder.remove()
    throw error
  }
}

/** Resolves when a client can connect and sees the broker; rejects when the process ends first. */
export async function waitForBroker(brokers: string[], server?: ServerProcess): Promise<void> {
  const kafka = new Kafka({
    brokers,
    logLevel: logLevel.NOTHING,
    connectionTimeout: 1_000,
    retry: { retries: 0 },
  })
  let refusal: unknown
  await waitUntil(
    async () => {
      if (server?.running === false) {
        throw new Error(`Kafka ended before it was ready:\n${server.output}`)
      }
      const admin = kafka.admin()
      try {
        await admin.connect()
        const cluster = await admin.describeCluster()
        return cluster.brokers.length > 0
      } catch (error) {
        refusal = error
        return false
      } finally {
        await admin.disconnect()
      }
    },
    {
      timeoutMs: 60_000,
      message: () => `Kafka on ${brokers.join()}: ${String(refusal)}\n${server?.output ?? ''}`,
    },
  )
}
