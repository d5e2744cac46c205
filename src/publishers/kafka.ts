// Kafka through kafkajs: acks from all replicas, keys, headers, and a result per event.
// Two traps in kafkajs shape this file. Its idempotent producer takes a failed send's sequence numbers
// back, so a broker that did write that batch drops the next one as a duplicate and acks it: a loss. And
// a retry after a leader moved to a broker that has already answered skips that partition, yet resolves.
// Hence: not idempotent, and an event counts as sent only if its own partition was acknowledged.
import { createRequire } from 'node:module'
import type kafkajs from 'kafkajs'
import type { ICustomPartitioner, Kafka, Message, Producer, RecordMetadata } from 'kafkajs'
import type { Duration } from '../duration.ts'
import { OutboxOptionsError, PublishError, toError } from '../errors.ts'
import { messageHeaders, type OutboxEvent } from '../events.ts'
import { rejectUnknown, requireCount, requireDuration, requireMethods } from '../validate.ts'
import { classifyKafkaError } from './kafka-errors.ts'
import { KafkaLines } from './kafka-lines.ts'
import type { Publisher, PublishFailure, PublishResult } from './publisher.ts'

/** What is used of a producer, so that a kafkajs-compatible one from elsewhere fits too. */
export type KafkaProducer = Pick<Producer, 'sendBatch'>

export interface KafkaPublisherOptions {
  /** A kafkajs client. The publisher makes its own producer with it, and closes only that. */
  kafka?: Pick<Kafka, 'producer'>
  /**
   * Instead of `kafka`: a producer that you connect and close. Its retries must end within
   * `requestTimeout` times `retries` + 1, and results carry no partition where it cannot be told.
   */
  producer?: KafkaProducer
  /** How often kafkajs tries again by itself, for a leader that moves. The outbox does the rest. @default 2 */
  retries?: number
  /** The `requestTimeout` that the kafkajs client was made with. @default '30s', as in kafkajs */
  requestTimeout?: Duration
  /**
   * The most that goes into one request. Brokers limit what one partition gets at once by their
   * `max.message.bytes`, 1 MB by default; keep this below it. @default 900_000
   */
  maxRequestBytes?: number
}

const KNOWN = ['kafka', 'producer', 'retries', 'requestTimeout', 'maxRequestBytes']

/** Reconnecting comes on top of a request: kafkajs tries that six times by default, over some 15 s. */
const RECONNECT_MS = 15_000

export function kafkaPublisher(options: KafkaPublisherOptions): Publisher {
  rejectUnknown('kafkaPublisher()', options, KNOWN)
  const { kafka, producer: given } = options
  const retries = requireCount('retries', options.retries ?? 2, 100, 0)
  const maxRequestBytes = requireCount(
    'maxRequestBytes',
    options.maxRequestBytes ?? 900_000,
    2 ** 30,
  )
  const requestTimeoutMs = requireDuration('requestTimeout', options.requestTimeout ?? '30s', 1)
  if (Boolean(kafka) === Boolean(given)) {
    throw new OutboxOptionsError(
      "kafkaPublisher() takes either kafka (a kafkajs client) or producer, e.g. { kafka: new Kafka({ brokers: ['localhost:9092'] }) }",
    )
  }
  if (kafka)
    requireMethods('kafka', kafka, ['producer'], 'a kafkajs client: new Kafka({ brokers })')
  else requireMethods('producer', given, ['sendBatch'], 'a connected kafkajs producer')
  const partitions = new WeakMap<Message, number>()
  const createPartitioner = recordingPartitioner(partitions)
  const retry = { retries, initialRetryTime: 100, maxRetryTime: 1_000 }
  const own =
    kafka && new KafkaLines(() => kafka.producer({ idempotent: false, retry, createPartitioner }))
  const sender: KafkaProducer = (given ?? own)!

  async function publish(events: readonly OutboxEvent[]): Promise<PublishResult[]> {
    const results: PublishResult[] = []
    for (const chunk of chunksOf(events.map(toOutgoing), maxRequestBytes)) {
      results.push(...(await send(chunk)))
      const failure = results.find(isTransient)
      // What would follow a failed chunk might overtake it.
      if (failure) return events.map((_, n) => results[n] ?? { ...failure, kind: 'held' })
    }
    return results
  }

  async function send(batch: readonly Outgoing[]): Promise<PublishResult[]> {
    try {
      const acks = await sender.sendBatch({ acks: -1, topicMessages: groupByTopic(batch) })
      return matchAcks(batch, acks, own ? partitions : null)
    } catch (thrown) {
      const failure = classifyKafkaError(toError(thrown))
      if (failure.kind === 'transient') own?.distrust()
      const parts = divide(batch, failure)
      return parts ? await sendParts(batch, parts) : batch.map(() => failure)
    }
  }

  async function sendParts(batch: readonly Outgoing[], parts: readonly Outgoing[][]) {
    const results = new Map<Outgoing, PublishResult>()
    const failedTopics = new Map<string, PublishFailure>()
    for (const part of parts) {
      const failedBefore = failedTopics.get(part[0]!.event.topic)
      const answers = failedBefore ? [] : await send(part)
      for (const [n, outgoing] of part.entries()) {
        const result: PublishResult = failedBefore ? { ...failedBefore, kind: 'held' } : answers[n]!
        results.set(outgoing, result)
        if (isTransient(result)) failedTopics.set(outgoing.event.topic, result)
      }
    }
    return batch.map((outgoing) => results.get(outgoing)!)
  }

  const settlesWithinMs = (retries + 1) * (requestTimeoutMs + RECONNECT_MS)
  return {
    name: 'kafka',
    settlesWithinMs,
    publish,
    connect: async () => own?.connect(),
    disconnect: async () => own?.disconnect(),
  }
}

interface Outgoing {
  readonly event: OutboxEvent
  readonly message: Message
  readonly bytes: number
}

function toOutgoing(event: OutboxEvent): Outgoing {
  const headers = messageHeaders(event)
  let bytes = Buffer.byteLength(event.payload) + Buffer.byteLength(event.aggregateId)
  for (const [name, value] of Object.entries(headers)) {
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value)
  }
  return { event, bytes, message: { key: event.aggregateId, value: event.payload, headers } }
}

function groupByTopic(batch: readonly Outgoing[]) {
  const topics = new Map<string, Message[]>()
  for (const { event, message } of batch) {
    const group = topics.get(event.topic)
    if (group) group.push(message)
    else topics.set(event.topic, [message])
  }
  return [...topics].map(([topic, messages]) => ({ topic, messages }))
}

/** kafkajs does not split a batch, and a broker refuses one that is too large as a whole. */
function chunksOf(batch: readonly Outgoing[], maxBytes: number): Outgoing[][] {
  const chunks: Outgoing[][] = []
  let room = 0
  for (const outgoing of batch) {
    if (chunks.length === 0 || outgoing.bytes > room) {
      chunks.push([])
      room = maxBytes
    }
    chunks.at(-1)!.push(outgoing)
    room -= outgoing.bytes
  }
  return chunks
}

function recordingPartitioner(partitions: WeakMap<Message, number>): ICustomPartitioner {
  // Loaded here, not on top: with `producer` given kafkajs need not be installed.
  const { Partitioners } = createRequire(import.meta.url)('kafkajs') as Pick<
    typeof kafkajs,
    'Partitioners'
  >
  return () => {
    const choose = Partitioners.DefaultPartitioner()
    return (args) => {
      const partition = choose(args)
      partitions.set(args.message, partition)
      return partition
    }
  }
}

// An ack names a topic, a partition and the offset of its first message; the rest is counting.
function matchAcks(
  batch: readonly Outgoing[],
  acks: readonly RecordMetadata[],
  partitions: WeakMap<Message, number> | null,
): PublishResult[] {
  const counted = new Map<RecordMetadata, bigint>()
  return batch.map(({ event, message }): PublishResult => {
    const { topic, aggregateId: key } = event
    const ofTopic = acks.filter((ack) => ack.topicName === topic)
    if (!partitions && ofTopic.length > 1) {
      return { ok: true, topic, key, partition: null, offset: null }
    }
    const partition = partitions?.get(message)
    const ack = partitions ? ofTopic.find((one) => one.partition === partition) : ofTopic[0]
    if (!ack) return missingAck(topic)
    const place = counted.get(ack) ?? 0n
    counted.set(ack, place + 1n)
    const offset = ack.baseOffset === undefined ? null : String(BigInt(ack.baseOffset) + place)
    return { ok: true, topic, key, partition: ack.partition, offset }
  })
}

function missingAck(topic: string): PublishFailure {
  const error = new PublishError(
    'PUBLISH_FAILED',
    `Kafka's answer has no acknowledgement for this event's partition of '${topic}'`,
  )
  return { ok: false, kind: 'transient', error, scope: 'topic' }
}

// kafkajs reports one error for a whole batch. Where a part of it can be to blame, the parts are tried
// alone: by topic first, then by halves. A transient failure of the whole broker is nobody's fault.
function divide(batch: readonly Outgoing[], failure: PublishFailure): Outgoing[][] | null {
  if (batch.length === 1 || (failure.kind === 'transient' && failure.scope === 'broker'))
    return null
  const topics = [...new Set(batch.map(({ event }) => event.topic))]
  if (topics.length > 1) {
    return topics.map((topic) => batch.filter(({ event }) => event.topic === topic))
  }
  if (failure.kind === 'transient') return null
  const middle = Math.ceil(batch.length / 2)
  return [batch.slice(0, middle), batch.slice(middle)]
}

function isTransient(result: PublishResult): result is PublishFailure {
  return !result.ok && result.kind === 'transient'
}
