// A real single-node Apache Kafka of one's own. It can be killed, paused and started again on the same ports and data,
// and may advertise the port of a proxy.
import { findFreePort } from './free-port.ts'
import {
  createKafkaNode,
  type KafkaListener,
  type KafkaNode,
  type KafkaPorts,
  makeClusterId,
} from './kafka-node.ts'

export type KafkaOptions = KafkaPorts & {
  /** Broker settings by name, such as `{ 'num.partitions': '1' }`. */
  settings?: Record<string, string>
  /** Listeners beside the plain ones, by name; names are in capitals. */
  extraListeners?: Readonly<Record<string, KafkaListener>>
  /** Flags of the JVM. @default a small heap and what starts quickly, not what is quick once it is warm */
  javaFlags?: readonly string[]
}

export type KafkaServer = Pick<
  KafkaNode,
  'port' | 'pid' | 'kill' | 'start' | 'pause' | 'resume'
> & {
  readonly managed: true
  /** Where clients connect; the advertised port if there is one. */
  readonly brokers: string[]
  /** Past any proxy, for the reader that checks what arrived. */
  readonly directBrokers: string[]
  /** Shuts down in order and deletes the data. */
  stop(): Promise<void>
}

export async function startKafka(options: KafkaOptions = {}): Promise<KafkaServer> {
  const { settings = {}, extraListeners, javaFlags, ...ports } = options
  const node = await createKafkaNode({
    ...ports,
    id: 1,
    clusterId: makeClusterId(),
    controllerPorts: new Map([[1, await findFreePort()]]),
    settings,
    extraListeners,
    javaFlags,
  })
  try {
    await node.start()
  } catch (error) {
    await node.remove()
    throw error
  }
  let stopped: Promise<void> | undefined
  return {
    managed: true,
    brokers: [node.address],
    directBrokers: [node.directAddress],
    port: node.port,
    get pid() {
      return node.pid
    },
    stop() {
      stopped ??= node.stop().then(() => node.remove())
      return stopped
    },
    kill: () => node.kill(),
    start: () => node.start(),
    pause: () => node.pause(),
    resume: () => node.resume(),
  }
}
