// Kafka through kafkajs: acks from all replicas, keys, headers, and a result per event.
// What kafkajs does shapes this file. Its idempotent producer takes a failed send's sequence numbers back,
// so a broker that did write that batch drops the next one as a duplicate and acks it: a loss. A retry after
// a leader moved to a broker that has already answered skips that partition, yet resolves. And it reports
// one error for all partitions of a request, of which others may have been written. Hence: not idempotent,
// a request per partition, and an event counts as sent only if its own partition was acknowledged.
import { performance } from 'node:perf_hooks'
import type { Kafka, Message, Producer } from 'kafkajs'
import type { Duration } from '../duration.ts'
import { OutboxOptionsError, toError } from '../errors.ts'
import { messageHeaders, orderingKey, type OutboxEvent } from '../events.ts'
import { groupBy } from '../group-by.ts'
import { rejectUnknown, requireCount, requireDuration, requireMethods } from '../validate.ts'
import { matchAcks } from './kafka-acks.ts'
import { classifyKafkaError, isAboutTopic, refuseTopic, TOOK_TOO_LONG } from './kafka-errors.ts'
import { KafkaLines } from './kafka-lines.ts'
import { KafkaPartitions } from './kafka-partitions.ts'
import type { Publisher, PublishFailure, PublishResult } from './publisher.ts'

/** What is used of a producer, so that a kafkajs-compatible one from elsewhere fits too. */
export type KafkaProducer = Pick<Producer, 'sendBatch'>

export interface KafkaPublisherOptions {
  /** A kafkajs client. The publisher makes its own producer with it, and closes only that. */
  kafka?: Pick<Kafka, 'producer'>
  /**
   * Instead of `kafka`: a producer that you connect and close. Its retries must end within
   * `requestTimeout` times `retries` + 1. How it partitions is unknown, so requests are per topic, results
   * may carry no partition, and a partition that kafkajs skips in silence goes unnoticed.
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

/** An event on its way to one partition. */
export interface Outgoing {
  readonly event: OutboxEvent
  readonly message: Message
  readonly bytes: number
}

type Settle = (outgoing: Outgoing, result: PublishResult) => void

export function kafkaPublisher(options: KafkaPublisherOptions): Publisher {
  rejectUnknown('kafkaPublisher()', options, KNOWN)
  const { kafka, producer: given } = options
  const retries = requireCount('retries', options.retries ?? 2, 100, 0)
  const maxBytes = requireCount('maxRequestBytes', options.maxRequestBytes ?? 900_000, 2 ** 30)
  const requestTimeoutMs = requireDuration('requestTimeout', options.requestTimeout ?? '30s', 1)
  if (Boolean(kafka) === Boolean(given)) {
    throw new OutboxOptionsError(
      "kafkaPublisher() takes either kafka (a kafkajs client) or producer, e.g. { kafka: new Kafka({ brokers: ['localhost:9092'] }) }",
    )
  }
  if (kafka)
    requireMethods('kafka', kafka, ['producer'], 'a kafkajs client: new Kafka({ brokers })')
  else requireMethods('producer', given, ['sendBatch'], 'a connected kafkajs producer')

  const partitions = kafka ? new KafkaPartitions() : null
  const own = kafka && new KafkaLines(() => kafka.producer(producerConfig(retries, partitions!)))
  const sender: KafkaProducer = (given ?? own)!

  async function publish(events: readonly OutboxEvent[]): Promise<PublishResult[]> {
    const batch = events.map(toOutgoing)
    const results = new Map<Outgoing, PublishResult>()
    const failedKeys = new Map<string, PublishFailure>()
    const closesAt = performance.now() + requestTimeoutMs
    const settle: Settle = (outgoing, result) => {
      results.set(outgoing, result)
      const failed = !result.ok && result.kind !== 'permanent'
      if (failed) failedKeys.set(orderingKey(outgoing.event), result)
    }
    for (const round of roundsOf(batch)) {
      const free = round.filter((outgoing) => {
        const { topic } = outgoing.event
        const failure = refuseTopic(topic) ?? heldBy(failedKeys.get(orderingKey(outgoing.event)))
        if (failure) settle(outgoing, failure)
        return !failure
      })
      const topics = [...groupBy(free, ({ event }) => event.topic).values()]
      await Promise.all(topics.map((ofTopic) => sendTopic(ofTopic, closesAt, settle)))
    }
    return batch.map((outgoing) => results.get(outgoing)!)
  }

  async function sendTopic(ofTopic: readonly Outgoing[], closesAt: number, settle: Settle) {
    if (!partitions) return await sendInTurn(ofTopic, closesAt, settle)
    // The first event of a topic goes alone: with it kafkajs learns, and tells, how many partitions it has.
    let rest = ofTopic
    if (!partitions.knows(ofTopic[0]!.event.topic)) {
      rest = ofTopic.slice(1)
      await exclusively(async () => settle(ofTopic[0]!, (await send([ofTopic[0]!], true))[0]!))
    }
    const lanes = partitions.divide(rest)
    await Promise.all(lanes.map((lane) => sendInTurn(lane, closesAt, settle)))
  }

  // One after another for one partition; what would follow a failed request might overtake it.
  async function sendInTurn(lane: readonly Outgoing[], closesAt: number, settle: Settle) {
    let failure: PublishFailure | undefined
    for (const chunk of chunksOf(lane, maxBytes)) {
      if (performance.now() > closesAt) failure ??= TOOK_TOO_LONG
      const answers = failure ? null : await send(chunk)
      for (const [n, outgoing] of chunk.entries()) {
        settle(outgoing, answers?.[n] ?? heldBy(failure)!)
      }
      failure ??= answers?.find(isTransient)
    }
  }

  async function send(chunk: readonly Outgoing[], alone = false): Promise<PublishResult[]> {
    let result = await trySend(chunk)
    // While kafkajs is being told of a topic that it may not use, it fails everybody with that topic's
    // error. Asked again when nobody else is, its answer is about this one.
    if (!alone && 'kind' in result && isAboutTopic(result)) {
      result = await exclusively(() => trySend(chunk))
    }
    if (!('kind' in result)) return result
    const failure = result
    if (failure.kind === 'transient' || chunk.length === 1) return chunk.map(() => failure)

    // A broker takes or refuses what one partition gets as a whole, so halving a refused request finds
    // the event to blame without sending any other twice.
    const middle = Math.ceil(chunk.length / 2)
    const first = await send(chunk.slice(0, middle))
    const broken = first.find(isTransient)
    const second = chunk.slice(middle)
    return [...first, ...(broken ? second.map(() => heldBy(broken)!) : await send(second))]
  }

  async function trySend(chunk: readonly Outgoing[]): Promise<PublishResult[] | PublishFailure> {
    const { topic } = chunk[0]!.event
    try {
      const messages = chunk.map(({ message }) => message)
      const acks = await sender.sendBatch({ acks: -1, topicMessages: [{ topic, messages }] })
      return matchAcks(chunk, acks, partitions)
    } catch (thrown) {
      const failure = classifyKafkaError(topic, toError(thrown))
      if (failure.kind === 'transient') own?.distrust()
      return failure
    }
  }

  let turn: Promise<unknown> = Promise.resolve()
  function exclusively<T>(action: () => Promise<T>): Promise<T> {
    const mine = turn.then(action)
    turn = mine.catch(() => {})
    return mine
  }

  const settlesWithinMs = requestTimeoutMs + (retries + 1) * (requestTimeoutMs + RECONNECT_MS)
  return {
    name: 'kafka',
    settlesWithinMs,
    publish,
    connect: async () => own?.connect(),
    disconnect: async () => own?.disconnect(),
  }
}

function producerConfig(retries: number, partitions: KafkaPartitions) {
  const retry = { retries, initialRetryTime: 100, maxRetryTime: 1_000 }
  return { idempotent: false, retry, createPartitioner: partitions.createPartitioner }
}

function toOutgoing(event: OutboxEvent): Outgoing {
  const headers = messageHeaders(event)
  let bytes = Buffer.byteLength(event.payload) + Buffer.byteLength(event.aggregateId)
  for (const [name, value] of Object.entries(headers)) {
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value)
  }
  return { event, bytes, message: { key: event.aggregateId, value: event.payload, headers } }
}

/** Usually one. An aggregate whose events go to several topics takes its turns, to keep its order. */
function roundsOf(batch: readonly Outgoing[]): Outgoing[][] {
  const rounds: Outgoing[][] = []
  const last = new Map<string, { topic: string; round: number }>()
  for (const outgoing of batch) {
    const key = orderingKey(outgoing.event)
    const { topic } = outgoing.event
    const before = last.get(key) ?? { topic, round: 0 }
    const round = before.round + (before.topic === topic ? 0 : 1)
    last.set(key, { topic, round })
    ;(rounds[round] ??= []).push(outgoing)
  }
  return rounds
}

function chunksOf(lane: readonly Outgoing[], maxBytes: number): Outgoing[][] {
  const chunks: Outgoing[][] = []
  let room = 0
  for (const outgoing of lane) {
    if (chunks.length === 0 || outgoing.bytes > room) {
      chunks.push([])
      room = maxBytes
    }
    chunks.at(-1)!.push(outgoing)
    room -= outgoing.bytes
  }
  return chunks
}

function heldBy(failure: PublishFailure | undefined): PublishFailure | undefined {
  return failure && { ...failure, kind: 'held' }
}

function isTransient(result: PublishResult): result is PublishFailure {
  return !result.ok && result.kind === 'transient'
}
