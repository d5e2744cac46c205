// Kafka through kafkajs, or a producer that does as if: acks from all replicas, keys, headers, and a result per event.
// What kafkajs does shapes this file. Its idempotent producer takes a failed send's sequence numbers back,
// so a broker that did write that batch drops the next one as a duplicate and acks it: a loss. A retry after
// a leader moved to a broker that has already answered skips that partition, yet resolves. And it reports
// one error for all partitions of a request, of which others may have been written. Hence: not idempotent,
// a request per partition, and an event counts as sent only if its own partition was acknowledged.
import { performance } from 'node:perf_hooks'
import type { Kafka, Producer, ProducerConfig } from 'kafkajs'
import type { Duration } from '../duration.ts'
import { type Envelope, resolveEnvelope } from '../envelope/envelope.ts'
import { writeAll } from '../envelope/serializer.ts'
import { OutboxOptionsError, toError } from '../errors.ts'
import { orderingKey, type OutboxEvent } from '../events.ts'
import { groupBy } from '../group-by.ts'
import { rejectUnknown, requireCount, requireDuration, requireMethods } from '../validate.ts'
import { matchAcks } from './kafka-acks.ts'
import { KafkaBatch, type Outgoing } from './kafka-batch.ts'
import { isConfluent, MESSAGE_TIMEOUT } from './kafka-confluent.ts'
import { classifyKafkaError, isAboutTopic } from './kafka-errors.ts'
import { KafkaLines } from './kafka-lines.ts'
import { KafkaPartitions } from './kafka-partitions.ts'
import {
  type Publisher,
  type PublishFailure,
  type PublishResult,
  type PublishRules,
  TOOK_TOO_LONG,
} from './publisher.ts'

/** What is used of a producer, so that a kafkajs-compatible one from elsewhere fits too. */
export type KafkaProducer = Pick<Producer, 'sendBatch'>

export interface KafkaPublisherOptions {
  /** A kafkajs client. The publisher makes its own producer with it, and closes only that. */
  kafka?: Pick<Kafka, 'producer'>
  /**
   * Instead of `kafka`: a producer that you connect and close, of kafkajs or of @confluentinc/kafka-javascript. The
   * retries of kafkajs must end within `requestTimeout` times `retries` + 1. How it partitions is unknown, so
   * requests are per topic, results may carry no partition, and a partition that kafkajs skips in silence goes
   * unnoticed.
   */
  producer?: KafkaProducer
  /** How often kafkajs tries again by itself, for a leader that moves. The outbox does the rest. @default 2 */
  retries?: number
  /**
   * The `requestTimeout` that the kafkajs client was made with, or the `message.timeout.ms` of the Confluent producer.
   * @default '30s' and '5m', as in these
   */
  requestTimeout?: Duration
  /**
   * The most that goes into one request. Brokers limit what one partition gets at once by their
   * `max.message.bytes`, 1 MB by default; keep this below it. @default 900_000
   */
  maxRequestBytes?: number
  /** What a message looks like: 'headers', 'json', cloudEvents({ source }), or a serializer. @default 'headers' */
  envelope?: Envelope
}

const KNOWN = ['kafka', 'producer', 'retries', 'requestTimeout', 'maxRequestBytes', 'envelope']

const WIRE_RULES = { attributePrefix: 'ce_', jsonType: undefined } as const

/** In claims of this many a backlog goes out half as fast again as in such of 250. */
const BATCH_SIZE = 1_000

/** Reconnecting comes on top of a request: kafkajs tries that six times by default, over some 15 s. */
const RECONNECT_MS = 15_000

export function kafkaPublisher(options: KafkaPublisherOptions): Publisher {
  rejectUnknown('kafkaPublisher()', options, KNOWN)
  const { kafka, producer: given } = options
  const retries = requireCount('retries', options.retries ?? 2, 100, 0)
  const maxBytes = requireCount('maxRequestBytes', options.maxRequestBytes ?? 900_000, 2 ** 30)
  const write = resolveEnvelope(options.envelope ?? 'headers', WIRE_RULES)
  if (Boolean(kafka) === Boolean(given)) {
    throw new OutboxOptionsError(
      "kafkaPublisher() takes either kafka (a kafkajs client) or producer, e.g. { kafka: new Kafka({ brokers: ['localhost:9092'] }) }",
    )
  }
  if (kafka)
    requireMethods('kafka', kafka, ['producer'], 'a kafkajs client: new Kafka({ brokers })')
  else requireMethods('producer', given, ['sendBatch'], 'a connected kafkajs producer')

  const eachAlone = given !== undefined && isConfluent(given)
  if (eachAlone) refuseUnused(options)
  const timeout = options.requestTimeout ?? (eachAlone ? MESSAGE_TIMEOUT : '30s')
  const requestTimeoutMs = requireDuration('requestTimeout', timeout, 1)
  const partitions = kafka ? new KafkaPartitions() : null
  const own = kafka && new KafkaLines(producerMaker(kafka, producerConfig(retries, partitions!)))
  const sender: KafkaProducer = (given ?? own)!
  const settings = eachAlone ? {} : { acks: -1 }

  async function publish(events: readonly OutboxEvent[], rules: PublishRules = {}) {
    const closesAt = performance.now() + requestTimeoutMs
    const messages = await writeAll(events, write, requestTimeoutMs)
    const batch = new KafkaBatch(events, messages, rules, closesAt)
    for (const round of batch.rounds()) {
      const topics = groupBy(batch.admit(round), ({ event }) => event.topic)
      await Promise.all([...topics.values()].map((ofTopic) => sendTopic(ofTopic, batch)))
    }
    return batch.results()
  }

  async function sendTopic(ofTopic: readonly Outgoing[], batch: KafkaBatch) {
    if (eachAlone) return await sendEachAlone(ofTopic, batch)
    if (!partitions) return await sendInTurn(ofTopic, batch, maxBytes)
    // The first event of a topic goes alone: with it kafkajs learns, and tells, how many partitions it has.
    let rest = ofTopic
    if (!partitions.knows(ofTopic[0]!.event.topic)) {
      rest = ofTopic.slice(1)
      await exclusively(() => send([ofTopic[0]!], batch, true))
    }
    const lanes = partitions.divide(rest)
    await Promise.all(lanes.map((lane) => sendInTurn(lane, batch, maxBytes)))
  }

  async function sendEachAlone(ofTopic: readonly Outgoing[], batch: KafkaBatch) {
    const lanes = groupBy(ofTopic, ({ event }) => orderingKey(event))
    await Promise.all([...lanes.values()].map((lane) => sendInTurn(lane, batch, 0)))
  }

  // One after another for one partition; what would follow a failed request might overtake it.
  async function sendInTurn(lane: readonly Outgoing[], batch: KafkaBatch, chunkBytes: number) {
    let failure: PublishFailure | undefined
    for (const chunk of chunksOf(lane, chunkBytes)) {
      if (performance.now() > batch.closesAt) failure ??= TOOK_TOO_LONG
      if (failure) batch.hold(chunk, failure)
      else failure = await send(chunk, batch, eachAlone)
    }
  }

  /** Answers the failure, if there was one behind which nothing may follow. */
  async function send(
    chunk: readonly Outgoing[],
    batch: KafkaBatch,
    alone = false,
  ): Promise<PublishFailure | undefined> {
    const free = batch.admit(chunk)
    if (free.length === 0) return undefined
    let answer = await trySend(free)
    // While kafkajs is being told of a topic that it may not use, it fails everybody with that topic's
    // error. Asked again when nobody else is, its answer is about this one.
    if (!alone && 'kind' in answer && isAboutTopic(answer)) {
      answer = await exclusively(() => trySend(free))
    }
    if (!('kind' in answer)) {
      for (const [n, outgoing] of free.entries()) batch.settle(outgoing, answer[n]!)
      return answer.find(isTransient)
    }
    const failure = answer
    if (failure.kind === 'transient' || free.length === 1) {
      for (const outgoing of free) batch.settle(outgoing, failure)
      return failure.kind === 'transient' ? failure : undefined
    }
    // A broker takes or refuses what one partition gets as a whole, so halving a refused request finds
    // the event to blame without sending any other twice.
    const middle = Math.ceil(free.length / 2)
    const broken = await send(free.slice(0, middle), batch)
    if (!broken) return await send(free.slice(middle), batch)
    batch.hold(free.slice(middle), broken)
    return broken
  }

  async function trySend(chunk: readonly Outgoing[]): Promise<PublishResult[] | PublishFailure> {
    const { topic } = chunk[0]!.event
    try {
      const messages = chunk.map(({ message }) => message)
      const acks = await sender.sendBatch({ ...settings, topicMessages: [{ topic, messages }] })
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

  // What librdkafka is given to deliver a message is for its own retries too.
  const sendMs = eachAlone ? requestTimeoutMs : (retries + 1) * (requestTimeoutMs + RECONNECT_MS)
  const settlesWithinMs = requestTimeoutMs + sendMs
  return {
    name: 'kafka',
    settlesWithinMs,
    ...(!eachAlone && { batchSize: BATCH_SIZE }),
    publish,
    connect: async () => own?.connect(),
    disconnect: async () => own?.disconnect(),
  }
}

// librdkafka tries again and fills its requests by settings of its own.
function refuseUnused(options: KafkaPublisherOptions): void {
  for (const option of ['retries', 'maxRequestBytes'] as const) {
    if (options[option] === undefined) continue
    throw new OutboxOptionsError(
      `${option} means nothing to a Confluent producer, which goes by its own settings; remove it here and set those`,
    )
  }
}

// The first is made at once: a client that wants other settings is found out here, not at the first event.
function producerMaker(kafka: Pick<Kafka, 'producer'>, config: ProducerConfig): () => Producer {
  const make = () => kafka.producer(config)
  let first: Producer | null
  try {
    first = make()
  } catch {
    throw new OutboxOptionsError(
      'kafka must be a kafkajs client, and this one does not take the settings of a kafkajs producer; of @confluentinc/kafka-javascript connect a producer and pass it as producer',
    )
  }
  return () => {
    const producer = first ?? make()
    first = null
    return producer
  }
}

function producerConfig(retries: number, partitions: KafkaPartitions) {
  const retry = { retries, initialRetryTime: 100, maxRetryTime: 1_000 }
  return { idempotent: false, retry, createPartitioner: partitions.createPartitioner }
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

function isTransient(result: PublishResult): result is PublishFailure {
  return !result.ok && result.kind === 'transient'
}
