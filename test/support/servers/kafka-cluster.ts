// A real Apache Kafka of several nodes, each broker and controller in one. Three by default: every topic on all of them,
// and two have to have a message before it is acked. Each node can be killed, paused, shut down and started by itself.
import { type Admin, Kafka, logLevel } from 'kafkajs'
import { waitUntil } from '../timing/wait-until.ts'
import { findFreePort } from './free-port.ts'
import { createKafkaNode, type KafkaNode, type KafkaPorts, makeClusterId } from './kafka-node.ts'
import { createTopic } from './topic-reader.ts'

export type KafkaClusterOptions = {
  /** One entry for each node. @default three on free ports */
  ports?: readonly KafkaPorts[]
  /** Broker settings by name, such as `{ 'auto.create.topics.enable': 'false' }`. */
  settings?: Record<string, string>
}

type NewTopic = {
  /** @default 3 */
  partitions?: number
  /** @default the brokers' own setting: 2 on three nodes */
  minInsyncReplicas?: number
  /** The id of the node that leads all partitions. @default as Kafka likes */
  ledBy?: number
}

export type KafkaCluster = {
  readonly nodes: readonly KafkaNode[]
  /** Where clients connect: the addresses of all nodes, running or not. */
  readonly brokers: string[]
  /** Past any proxy, for the reader that checks what arrived. */
  readonly directBrokers: string[]
  /** Creates a topic with a replica on each node. Resolves when it can be written to. */
  createTopic(topic: string, options?: NewTopic): Promise<void>
  /** The node that leads the partition now. */
  findLeader(topic: string, partition?: number): Promise<KafkaNode>
  /** The ids of the nodes that are in sync, by partition. */
  fetchInSync(topic: string): Promise<number[][]>
  /** Resolves when every replica of every topic, internal ones too, is in sync. */
  waitUntilInSync(): Promise<void>
  /** Asks the cluster something that kafkajs's admin client can ask. */
  ask<T>(question: (admin: Admin) => Promise<T>): Promise<T>
  /** Ends all nodes and deletes their data. */
  stop(): Promise<void>
}

const THREE: readonly KafkaPorts[] = [{}, {}, {}]

export async function startKafkaCluster(options: KafkaClusterOptions = {}): Promise<KafkaCluster> {
  const nodes = await createNodes(options)
  const removeAll = () => Promise.all(nodes.map((node) => node.remove()))
  try {
    // Together: a node is let in by a quorum, which the first alone is not.
    await Promise.all(nodes.map((node) => node.start()))
  } catch (error) {
    await removeAll()
    throw error
  }
  const directBrokers = nodes.map(({ directAddress }) => directAddress)
  const kafka = new Kafka({
    brokers: directBrokers,
    logLevel: logLevel.NOTHING,
    connectionTimeout: 1_000,
    requestTimeout: 5_000,
    // While a leader moves there is none for a moment.
    retry: { initialRetryTime: 50, maxRetryTime: 1_000, retries: 20 },
  })
  let stopped: Promise<void> | undefined

  async function ask<T>(question: (admin: Admin) => Promise<T>): Promise<T> {
    const admin = kafka.admin()
    await admin.connect()
    try {
      return await question(admin)
    } finally {
      await admin.disconnect()
    }
  }

  async function fetchPartitions(topic: string) {
    const { topics } = await ask((admin) => admin.fetchTopicMetadata({ topics: [topic] }))
    return topics[0]!.partitions.toSorted((a, b) => a.partitionId - b.partitionId)
  }

  return {
    nodes,
    brokers: nodes.map(({ address }) => address),
    directBrokers,
    async createTopic(topic, { partitions, minInsyncReplicas, ledBy } = {}) {
      const others = nodes.map(({ id }) => id).filter((id) => id !== ledBy)
      await createTopic(directBrokers, topic, partitions, {
        replicas: nodes.length,
        brokers: ledBy === undefined ? undefined : [ledBy, ...others],
        ...(minInsyncReplicas && {
          settings: { 'min.insync.replicas': String(minInsyncReplicas) },
        }),
      })
    },
    async findLeader(topic, partition = 0) {
      const leader = (await fetchPartitions(topic))[partition]?.leader
      const node = nodes.find(({ id }) => id === leader)
      if (!node) throw new Error(`partition ${partition} of ${topic} has no leader`)
      return node
    },
    async fetchInSync(topic) {
      return (await fetchPartitions(topic)).map(({ isr }) => isr)
    },
    async waitUntilInSync() {
      let seen: unknown
      await waitUntil(
        async () => {
          const behind = await ask(findBehind).catch((error: unknown) => [String(error)])
          seen = behind
          return behind.length === 0
        },
        { message: () => `every replica is in sync; behind: ${String(seen)}`, timeoutMs: 60_000 },
      )
    },
    ask,
    stop() {
      // Not in order: the last ones would wait in vain for a quorum to move their leaders.
      stopped ??= Promise.all(nodes.map((node) => node.kill()))
        .then(removeAll)
        .then(() => {})
      return stopped
    },
  }
}

async function createNodes({
  ports = THREE,
  settings = {},
}: KafkaClusterOptions): Promise<KafkaNode[]> {
  const clusterId = makeClusterId()
  const controllerPorts = new Map<number, number>()
  for (const n of ports.keys()) controllerPorts.set(n + 1, await findFreePort())
  const created = await Promise.allSettled(
    ports.map((ofNode, n) =>
      createKafkaNode({ ...ofNode, id: n + 1, clusterId, controllerPorts, settings }),
    ),
  )
  const nodes = created.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const failed = created.find((one) => one.status === 'rejected')
  if (!failed) return nodes
  await Promise.all(nodes.map((node) => node.remove()))
  throw failed.reason
}

/** The partitions that miss a replica. */
async function findBehind(admin: Admin): Promise<string[]> {
  const { topics } = await admin.fetchTopicMetadata()
  return topics.flatMap(({ name, partitions }) =>
    partitions
      .filter(({ isr, replicas }) => isr.length < replicas.length)
      .map(({ partitionId, isr }) => `${name}/${partitionId} on ${isr.join()}`),
  )
}
