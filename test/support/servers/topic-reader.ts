// The oracle for what reached Kafka: reads a topic from the beginning with a plain consumer, and knows
// from the broker's watermarks when it has seen everything.
import { type Admin, type IHeaders, Kafka, logLevel } from 'kafkajs'
import { uniqueName } from '../doubles/unique-name.ts'
import { waitUntil } from '../timing/wait-until.ts'

export type TopicMessage = {
  key: string | null
  value: string | null
  /** The value as it is. */
  bytes: Buffer | null
  headers: Record<string, string>
  partition: number
  offset: string
  /** In ms. */
  timestamp: string
}

export type TopicReader = {
  /** In order of arrival; within a partition that is the order of the log. */
  readonly messages: readonly TopicMessage[]
  /** Resolves with all messages once there are at least so many. */
  waitForCount(count: number): Promise<readonly TopicMessage[]>
  /** Reads up to the high watermarks at the time of the call and returns everything read. */
  readToEnd(): Promise<readonly TopicMessage[]>
  stop(): Promise<void>
}

export type Replication = {
  replicas: number
  /** Settings of the topic by name. */
  settings?: Record<string, string>
  /** The brokers of each partition, its leader first. @default as Kafka likes */
  brokers?: number[] | undefined
}

export async function createTopic(
  brokers: string[],
  topic: string,
  partitions = 3,
  { replicas, brokers: placed, settings = {} }: Replication = { replicas: 1 },
): Promise<void> {
  const admin = openKafka(brokers).admin()
  await admin.connect()
  try {
    // kafkajs's own wait for leaders fails when the broker has not heard of the new topic yet.
    const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }))
    const replicaAssignment = Array.from({ length: partitions }, (_, partition) => {
      return { partition, replicas: placed ?? [] }
    })
    const wanted = placed
      ? { topic, replicaAssignment, configEntries }
      : { topic, numPartitions: partitions, replicationFactor: replicas, configEntries }
    await admin.createTopics({ topics: [wanted], waitForLeaders: false })
    await waitUntil(() => hasLeaders(admin, topic, partitions), { message: `${topic} is ready` })
  } finally {
    await admin.disconnect()
  }
}

/** Whether the leader of each partition responds for it, not only whether it is known who that will be. */
async function hasLeaders(admin: Admin, topic: string, partitions: number): Promise<boolean> {
  return (await readOffsets(admin, topic))?.length === partitions
}

/** null while a partition has no leader: it is new, or its broker was away. */
async function readOffsets(admin: Admin, topic: string) {
  try {
    return await admin.fetchTopicOffsets(topic)
  } catch (error) {
    const { type } = error as { type?: string }
    if (type && NOT_READY.has(type)) return null
    throw error
  }
}

const NOT_READY = new Set([
  'UNKNOWN_TOPIC_OR_PARTITION',
  'LEADER_NOT_AVAILABLE',
  'NOT_LEADER_FOR_PARTITION',
])

export async function readTopic(brokers: string[], topic: string): Promise<TopicReader> {
  const kafka = openKafka(brokers)
  const messages: TopicMessage[] = []
  // The offset after the last one processed. A consumer that had to rejoin is handed messages again;
  // an oracle that counted them twice would report duplicates that the topic does not have.
  const positions = new Map<number, bigint>()
  const position = (partition: number) => positions.get(partition) ?? 0n
  const advance = (partition: number, offset: string) => {
    const next = BigInt(offset) + 1n
    if (next > position(partition)) positions.set(partition, next)
  }

  const consumer = kafka.consumer({
    groupId: uniqueName('topic-reader'),
    allowAutoTopicCreation: false,
    maxWaitTimeInMs: 200,
    // A broker that has just started looks for its group coordinator for a while.
    retry: { retries: 50, initialRetryTime: 100, maxRetryTime: 500 },
  })
  // Also told of batches that hold nothing but transaction markers, which are never handed out.
  consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
    advance(payload.partition, payload.lastOffset)
  })
  let crash: Error | undefined
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    crash = payload.error
  })
  const admin = kafka.admin()
  await Promise.all([consumer.connect(), admin.connect()])
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    eachMessage: async ({ partition, message }) => {
      const { key, value, headers, offset, timestamp } = message
      if (BigInt(offset) < position(partition)) return
      messages.push({
        key: key?.toString() ?? null,
        value: value?.toString() ?? null,
        bytes: value,
        headers: readHeaders(headers),
        partition,
        offset,
        timestamp,
      })
      advance(partition, offset)
    },
  })

  return {
    messages,
    async waitForCount(count) {
      await waitUntil(() => messages.length >= count, {
        message: () => `${count} messages in ${topic}, read ${messages.length}; ${String(crash)}`,
      })
      return messages
    },
    async readToEnd() {
      const ends = await fetchEnds(admin, topic)
      const behind = () => ends.filter((end) => position(end.partition) < end.high)
      await waitUntil(() => behind().length === 0, {
        message: () => `end of ${topic}, ${behind().length} partitions behind; ${String(crash)}`,
      })
      return messages
    },
    async stop() {
      await Promise.all([consumer.disconnect(), admin.disconnect()])
    },
  }
}

async function fetchEnds(admin: Admin, topic: string) {
  const offsets = await waitUntil(() => readOffsets(admin, topic), {
    message: `${topic} has a leader for each partition`,
  })
  return offsets
    .map(({ partition, low, high }) => ({ partition, low: BigInt(low), high: BigInt(high) }))
    .filter(({ low, high }) => high > low)
}

function readHeaders(headers: IHeaders = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, [value].flat().join()]),
  )
}

function openKafka(brokers: string[]): Kafka {
  return new Kafka({
    brokers,
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 50, maxRetryTime: 1_000, retries: 20 },
  })
}
