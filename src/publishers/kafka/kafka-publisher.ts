// Kafka through kafkajs or a compatible producer: acks from all replicas, keys, headers, and a result per event. The
// quirks of kafkajs shape it. Its idempotent producer reuses the sequence numbers of a failed send, so a broker that
// did write that batch drops and acks the next one: a loss. A retry after a leader moved to a broker that has already
// responded skips that partition, yet resolves. One error covers all partitions of a request, yet some may be written.
// Hence: not idempotent, a request per partition, and an event counts as sent only if its own partition was acked.
import { performance } from 'node:perf_hooks'
import type { Kafka, Producer } from 'kafkajs'
import type { Duration } from '../../checks/duration.ts'
import { type Envelope, resolveEnvelope } from '../../envelope/envelope.ts'
import { writeAll } from '../../envelope/serializer.ts'
import { OutboxOptionsError, toError } from '../../errors.ts'
import type { OutboxEvent } from '../../event/event.ts'
import { groupBy } from '../../runtime/group-by.ts'
import { Turns } from '../../runtime/turns.ts'
import {
  hasMethod,
  missesBraces,
  rejectUnknown,
  requireCount,
  requireDuration,
  requireMethods,
} from '../../checks/checks.ts'
import { explainConnect, findObstacle } from './access.ts'
import { matchAcks } from './acks.ts'
import { KafkaBatch, type Outgoing } from './batch.ts'
import { isConfluent, MESSAGE_TIMEOUT } from './confluent.ts'
import { chunksOf } from './chunks.ts'
import { classifyKafkaError, isAboutTopic } from './errors.ts'
import { lineMaker } from './kafkajs-line.ts'
import { KafkaPartitions } from './partitions.ts'
import { TopicLines } from './topic-lines.ts'
import { BATCH_SIZE, WIRE_RULES } from './wire.ts'
import type { PublishFailure, PublishResult } from '../../event/publish-result.ts'
import { type Publisher, type PublishRules, TOOK_TOO_LONG } from '../publisher.ts'

/** The part of a producer that is used, so that any kafkajs-compatible producer fits. */
export type KafkaProducer = Pick<Producer, 'sendBatch'>

export interface KafkaPublisherOptions {
  /** A kafkajs client. The publisher creates its own producers with it and closes only those. */
  kafka?: Pick<Kafka, 'producer'>
  /**
   * Instead of `kafka`: a producer of kafkajs or @confluentinc/kafka-javascript that you connect and close. The retries
   * of a kafkajs producer must end within `requestTimeout` times `retries` + 1. Its partitioner is unknown, so requests
   * are per topic, results may have no partition, and a partition that kafkajs silently skips goes unnoticed.
   */
  producer?: KafkaProducer
  /** How often kafkajs itself retries, while a leader moves. The outbox does all further retries. @default 2 */
  retries?: number
  /**
   * The `requestTimeout` of the kafkajs client, or the `message.timeout.ms` of the Confluent producer.
   * @default '30s' and '5m', as in these
   */
  requestTimeout?: Duration
  /**
   * The most bytes in one request. Brokers limit what one partition receives at once by `max.message.bytes`, 1 MB by
   * default; keep this option below it. @default 900_000
   */
  maxRequestBytes?: number
  /** The message format: 'headers', 'json', cloudEvents({ source }), or a serializer. @default 'headers' */
  envelope?: Envelope
}

const KNOWN = ['kafka', 'producer', 'retries', 'requestTimeout', 'maxRequestBytes', 'envelope']

/** Reconnecting adds to the time of a request: kafkajs tries it six times by default, over nine seconds and more. */
const RECONNECT_MS = 15_000

export function kafkaPublisher(options: KafkaPublisherOptions): Publisher {
  refuseBareClient(options)
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
  const own = kafka && new TopicLines(lineMaker(kafka, retries, partitions!))
  const turnsOfGiven = new Turns()
  // By then the client has stopped waiting, so the broker may stop too.
  const settings = eachAlone ? {} : { acks: -1, timeout: requestTimeoutMs }

  async function publish(events: readonly OutboxEvent[], rules: PublishRules = {}) {
    const closesAt = performance.now() + requestTimeoutMs
    const messages = await writeAll(events, write, requestTimeoutMs)
    const batch = new KafkaBatch(events, messages, rules, closesAt)
    const topics = groupBy(batch.admit(batch.entries), ({ event }) => event.topic)
    await Promise.all([...topics.values()].map((ofTopic) => sendTopic(ofTopic, batch)))
    return batch.results()
  }

  async function sendTopic(ofTopic: readonly Outgoing[], batch: KafkaBatch) {
    if (eachAlone) return await sendEachAlone(ofTopic, batch)
    if (!partitions) return await sendInTurn(ofTopic, batch, maxBytes)
    // The first event of a topic goes alone: only then does kafkajs learn how many partitions the topic has.
    let rest = ofTopic
    if (!partitions.knows(ofTopic[0]!.event.topic)) {
      rest = ofTopic.slice(1)
      const first = ofTopic[0]!
      await turnsOf(first.event.topic).take(() => send([first], batch, true))
    }
    const byPartition = partitions.divide(rest)
    await Promise.all(byPartition.map((ofOne) => sendInTurn(ofOne, batch, maxBytes)))
  }

  async function sendEachAlone(ofTopic: readonly Outgoing[], batch: KafkaBatch) {
    const lanes = groupBy(ofTopic, ({ event }) => event.lane)
    await Promise.all([...lanes.values()].map((lane) => sendInTurn(lane, batch, 0)))
  }

  // Requests for one partition go one after another: a request sent behind a failed one might overtake it.
  async function sendInTurn(ofOne: readonly Outgoing[], batch: KafkaBatch, chunkBytes: number) {
    let failure: PublishFailure | undefined
    for (const chunk of chunksOf(ofOne, chunkBytes)) {
      if (failure) batch.hold(chunk, failure)
      else failure = await send(chunk, batch, eachAlone)
    }
  }

  /** Returns a failure behind which nothing may follow, if there was one. */
  async function send(
    chunk: readonly Outgoing[],
    batch: KafkaBatch,
    alone = false,
  ): Promise<PublishFailure | undefined> {
    const free = batch.admit(chunk)
    if (free.length === 0) return undefined
    let answer = await trySend(free, batch)
    // While kafkajs learns that it may not use a topic, it fails every other send with that topic's error. Sent again
    // in a turn of its own, a refusal is about this event's topic.
    if (!alone && 'kind' in answer && isAboutTopic(answer)) {
      answer = await turnsOf(free[0]!.event.topic).take(() => trySend(free, batch))
    }
    if (!('kind' in answer)) {
      for (const [n, outgoing] of free.entries()) batch.conclude(outgoing, answer[n]!)
      return answer.find(isTransient)
    }
    const failure = answer
    if (failure.kind === 'held') {
      batch.hold(free, failure)
      return failure
    }
    if (failure.kind === 'transient' || free.length === 1) {
      for (const outgoing of free) batch.conclude(outgoing, failure)
      return failure.kind === 'transient' ? failure : undefined
    }
    // A broker accepts or refuses everything for one partition as a whole. So halving a refused request finds the event
    // to blame, and where requests are per partition it sends no other event twice.
    const middle = Math.ceil(free.length / 2)
    const broken = await send(free.slice(0, middle), batch)
    if (!broken) return await send(free.slice(middle), batch)
    batch.hold(free.slice(middle), broken)
    return broken
  }

  // settlesWithinMs holds only if no request begins late, whether it waited for its turn or for an earlier request.
  async function trySend(
    chunk: readonly Outgoing[],
    batch: KafkaBatch,
    again = false,
  ): Promise<PublishResult[] | PublishFailure> {
    if (performance.now() > batch.closesAt) return TOOK_TOO_LONG
    const { topic } = chunk[0]!.event
    const messages = chunk.map(({ message }) => message)
    const request = { ...settings, topicMessages: [{ topic, messages }] }
    const lines = own?.of(topic)
    const closings = lines?.closings
    let distrust: (() => void) | undefined
    try {
      const acks = lines
        ? await lines.use(({ producer }, distrustLine) => {
            distrust = distrustLine
            return producer.sendBatch(request)
          })
        : await given!.sendBatch(request)
      return matchAcks(chunk, acks, partitions !== null)
    } catch (thrown) {
      const error = toError(thrown)
      const failure = classifyKafkaError(topic, error)
      if (failure.kind === 'transient') distrust?.()
      // kafkajs sends requests while a connection logs in again, and Kafka refuses them and ends it. A new one gets in.
      const overtook = findObstacle(error)?.mayPass === true && lines?.closings === closings
      const mayGoAgain = !again && lines && overtook && performance.now() <= batch.closesAt
      return mayGoAgain ? await trySend(chunk, batch, true) : failure
    }
  }

  /** For what must not overlap on the producers of a topic. */
  function turnsOf(topic: string): Turns {
    return own?.of(topic).turns ?? turnsOfGiven
  }

  // librdkafka's delivery timeout already includes its own retries.
  const sendMs = eachAlone ? requestTimeoutMs : (retries + 1) * (requestTimeoutMs + RECONNECT_MS)
  const settlesWithinMs = requestTimeoutMs + sendMs
  return {
    name: 'kafka',
    system: 'kafka',
    orderScope: 'topic',
    settlesWithinMs,
    ...(!eachAlone && { batchSize: BATCH_SIZE }),
    publish,
    async connect() {
      await own?.connect().catch((thrown: unknown) => Promise.reject(explainConnect(thrown)))
    },
    disconnect: async () => own?.disconnect(),
  }
}

function refuseBareClient(given: unknown): void {
  if (hasMethod(given, 'producer')) {
    throw missesBraces('kafkaPublisher()', 'a client', 'write kafkaPublisher({ kafka })')
  }
  if (hasMethod(given, 'sendBatch')) {
    throw missesBraces('kafkaPublisher()', 'a producer', 'write kafkaPublisher({ producer })')
  }
}

// librdkafka retries and fills its requests according to its own settings.
function refuseUnused(options: KafkaPublisherOptions): void {
  for (const option of ['retries', 'maxRequestBytes'] as const) {
    if (options[option] === undefined) continue
    throw new OutboxOptionsError(
      `${option} has no effect on a Confluent producer, which uses its own settings; remove it and configure the producer instead`,
    )
  }
}

function isTransient(result: PublishResult): result is PublishFailure {
  return !result.ok && result.kind === 'transient'
}
