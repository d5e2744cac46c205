// One process of a real Apache Kafka, broker and controller in one, in KRaft mode and a temporary folder of its own. It
// can be killed, paused, shut down and started again on the same ports and data, and may advertise the port of a proxy.
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Kafka, logLevel } from 'kafkajs'
import { findFreePort } from './free-port.ts'
import { fetchKafkaJars } from './kafka-jars.ts'
import { createOwnedFolder } from './owned-folder.ts'
import { endProcess, runToEnd, type ServerProcess, spawnServer } from './server-process.ts'
import { waitUntil } from '../timing/wait-until.ts'

export type KafkaPorts = {
  /** @default a free port */
  port?: number
  /** The port that clients are told to connect to, when a proxy stands in front of `port`. */
  advertisedPort?: number
}

export type KafkaListener = {
  readonly protocol: 'SSL' | 'SASL_SSL'
  readonly port: number
}

export type KafkaNodeOptions = KafkaPorts & {
  readonly id: number
  readonly clusterId: string
  /** The nodes of the cluster by id, this one among them. */
  readonly controllerPorts: ReadonlyMap<number, number>
  /** Broker settings by name; these win. */
  readonly settings: Readonly<Record<string, string>>
  /** Listeners beside the plain ones, by name; names are in capitals. */
  readonly extraListeners?: Readonly<Record<string, KafkaListener>> | undefined
  /** Flags of the JVM. @default a small heap and what starts quickly, not what is quick once it is warm */
  readonly javaFlags?: readonly string[] | undefined
}

export type KafkaNode = {
  readonly id: number
  /** Where clients connect; the advertised port if there is one. */
  readonly address: string
  /** Past any proxy. */
  readonly directAddress: string
  readonly port: number
  /** The process id; another one after each `start()`. */
  readonly pid: number
  /** Starts the process on the same ports and data unless it runs. Resolves when a quorum has let it in. */
  start(): Promise<void>
  /** Shuts down in order: leaders move first. The data stays. */
  stop(): Promise<void>
  /** kill -9; the data stays. */
  kill(): Promise<void>
  /** Freezes the process: connections stay open, nothing answers. */
  pause(): void
  resume(): void
  /** Ends what still runs and deletes the data. */
  remove(): Promise<void>
}

const quickStart = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-XX:-UsePerfData']
const logFlags = [
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
  '-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info',
]
const processOptions = { endSignal: 'KILL' } as const

/** The settings of a quick broker in a cluster of that size; ids and addresses come on top. */
export function settingsFor(size: number): Record<string, string> {
  const replicas = String(Math.min(size, 3))
  const inSync = String(Math.min(size, 2))
  return {
    'process.roles': 'broker,controller',
    'controller.listener.names': 'CONTROLLER',
    'num.partitions': '3',
    'auto.create.topics.enable': 'true',
    'default.replication.factor': replicas,
    'min.insync.replicas': inSync,
    'offsets.topic.num.partitions': '1',
    'offsets.topic.replication.factor': replicas,
    'transaction.state.log.num.partitions': '1',
    'transaction.state.log.replication.factor': replicas,
    'transaction.state.log.min.isr': inSync,
    'share.coordinator.state.topic.replication.factor': replicas,
    'share.coordinator.state.topic.min.isr': inSync,
    'group.initial.rebalance.delay.ms': '0',
    'log.cleaner.dedupe.buffer.size': '4194304',
    // A killed broker may register again only when its old session ran out: 12 s with the default of 9 s.
    'broker.session.timeout.ms': '2000',
    'broker.heartbeat.interval.ms': '250',
  }
}

export function makeClusterId(): string {
  return randomBytes(16).toString('base64url')
}

/** A node with its data formatted, not yet started. */
export async function createKafkaNode(options: KafkaNodeOptions): Promise<KafkaNode> {
  const { id, clusterId, controllerPorts, extraListeners = {}, javaFlags = quickStart } = options
  const jars = await fetchKafkaJars()
  const folder = await createOwnedFolder('aftercommit-kafka-')
  const properties = join(folder.path, 'server.properties')
  const java = [...javaFlags, ...logFlags, `-Djava.io.tmpdir=${folder.path}`, '-cp', `${jars}/*`]

  async function configure(port: number, advertisedPort: number, directPort: number) {
    const direct = `DIRECT://127.0.0.1:${directPort}`
    const controller = `CONTROLLER://127.0.0.1:${controllerPorts.get(id)}`
    const extra = Object.entries(extraListeners)
    const extraAddresses = extra
      .map(([name, { port: at }]) => `,${name}://127.0.0.1:${at}`)
      .join('')
    const extraProtocols = extra.map(([name, { protocol }]) => `,${name}:${protocol}`).join('')
    const voters = [...controllerPorts].map(([voter, at]) => `${voter}@127.0.0.1:${at}`)
    const settings: Record<string, string> = {
      ...settingsFor(controllerPorts.size),
      'node.id': String(id),
      listeners: `CLIENT://127.0.0.1:${port},${direct},${controller}${extraAddresses}`,
      'advertised.listeners': `CLIENT://127.0.0.1:${advertisedPort},${direct}${extraAddresses}`,
      'listener.security.protocol.map': `CLIENT:PLAINTEXT,DIRECT:PLAINTEXT,CONTROLLER:PLAINTEXT${extraProtocols}`,
      'inter.broker.listener.name': 'DIRECT',
      'controller.quorum.voters': voters.join(),
      'log.dirs': join(folder.path, 'data'),
      ...options.settings,
    }
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
    await writeFile(properties, lines.join(''))
    // With '=', as an id may begin with a dash.
    const format = ['format', `--cluster-id=${clusterId}`, '-c', properties]
    await runToEnd(folder, 'java', [...java, 'kafka.tools.StorageTool', ...format], processOptions)
  }

  try {
    const [port, directPort] = await Promise.all([options.port ?? findFreePort(), findFreePort()])
    const advertisedPort = options.advertisedPort ?? port
    await configure(port, advertisedPort, directPort)
    const directAddress = `127.0.0.1:${directPort}`
    let server: ServerProcess | undefined

    return {
      id,
      address: `127.0.0.1:${advertisedPort}`,
      directAddress,
      port,
      get pid() {
        return server?.pid ?? 0
      },
      async start() {
        if (server?.running) return
        server = await spawnServer(
          folder,
          'java',
          [...java, 'kafka.Kafka', properties],
          processOptions,
        )
        // One listener may answer while another still fails to bind, so an answer alone is not enough.
        await server.waitForOutput('Kafka Server started')
        await waitForBroker([directAddress], server)
      },
      stop: () => endProcess(server, 'SIGTERM'),
      kill: () => endProcess(server, 'SIGKILL'),
      pause: () => server?.signal('SIGSTOP'),
      resume: () => server?.signal('SIGCONT'),
      remove: () => folder.remove(),
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
