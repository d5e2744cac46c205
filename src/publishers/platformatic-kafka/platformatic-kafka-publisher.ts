// Kafka through @platformatic/kafka: acks from all replicas, keys, headers, and a result per event. The client takes acks
// from the leader alone by default, chooses partitions by another rule than Java's client and kafkajs, and repeats whole
// requests; none of that is left to it. What it does when things fail is in docs/internals/traps.md.
import { performance } from 'node:perf_hooks'
import { compatibilityPartitioner, Producer, type ProducerOptions } from '@platformatic/kafka'
import type { Duration } from '../../checks/duration.ts'
import {
  hasMethod,
  missesBraces,
  rejectUnknown,
  requireCount,
  requireDuration,
} from '../../checks/checks.ts'
import { type Envelope, resolveEnvelope } from '../../envelope/envelope.ts'
import { writeAll } from '../../envelope/serializer.ts'
import { OutboxOptionsError } from '../../errors.ts'
import type { OutboxEvent } from '../../event/event.ts'
import { groupBy } from '../../runtime/group-by.ts'
import { KafkaBatch } from '../kafka/batch.ts'
import { explainConnect } from '../kafka/access.ts'
import { SocketWatch } from '../kafka/socket-watch.ts'
import { TopicLines } from '../kafka/topic-lines.ts'
import { BATCH_SIZE, WIRE_RULES } from '../kafka/wire.ts'
import type { Publisher, PublishRules } from '../publisher.ts'
import { connectError } from './answer.ts'
import { clientTimeout, limit } from './limit.ts'
import { recognizeTokenRefusal } from './token-refusal.ts'
import { type Line, TopicSend } from './topic-send.ts'

type TextOptions = ProducerOptions<string, string | Buffer, string, string>

/** What the publisher decides itself. */
type Decided =
  | 'acks'
  | 'beforeSerialization'
  | 'idempotent'
  | 'partitioner'
  | 'producerEpoch'
  | 'producerId'
  | 'registry'
  | 'repeatOnStaleMetadata'
  | 'requestTimeout'
  | 'retries'
  | 'retryDelay'
  | 'serializers'
  | 'timeout'
  | 'transactionalId'

export interface PlatformaticKafkaPublisherOptions {
  /** How to connect: `bootstrapBrokers`, `clientId`, `tls`, `sasl` and other options of a Producer of @platformatic/kafka. */
  client: Omit<TextOptions, Decided>
  /** How often a partition is tried again while its leader moves. The outbox does all further retries. @default 2 */
  retries?: number
  /** When a request without a response counts as failed. @default '30s' */
  requestTimeout?: Duration
  /**
   * The most bytes for one partition in one request. Brokers limit them by `max.message.bytes`, 1 MB by default; keep this
   * option below it. @default 900_000
   */
  maxRequestBytes?: number
  /** The message format: 'headers', 'json', cloudEvents({ source }), or a serializer. @default 'headers' */
  envelope?: Envelope
}

const KNOWN = ['client', 'retries', 'requestTimeout', 'maxRequestBytes', 'envelope']

const DECIDED: readonly Decided[] = [
  'acks',
  'beforeSerialization',
  'idempotent',
  'partitioner',
  'producerEpoch',
  'producerId',
  'registry',
  'repeatOnStaleMetadata',
  'requestTimeout',
  'retries',
  'retryDelay',
  'serializers',
  'timeout',
  'transactionalId',
]

/** The client's own default. */
const CONNECT_MS = 5_000

export function platformaticKafkaPublisher(options: PlatformaticKafkaPublisherOptions): Publisher {
  refuseBareClient(options)
  rejectUnknown('platformaticKafkaPublisher()', options, KNOWN)
  const { client } = options
  requireClient(client)
  const retries = requireCount('retries', options.retries ?? 2, 100, 0)
  const maxRequestBytes = requireCount(
    'maxRequestBytes',
    options.maxRequestBytes ?? 900_000,
    2 ** 30,
  )
  const requestTimeoutMs = requireDuration('requestTimeout', options.requestTimeout ?? '30s', 1)
  const write = resolveEnvelope(options.envelope ?? 'headers', WIRE_RULES)
  const connectTimeoutMs = client.connectTimeout ?? CONNECT_MS
  let opened = 0
  const lines = new TopicLines(() => {
    const bootstrapBrokers = rotate(client.bootstrapBrokers as string[], opened)
    opened += 1
    return openLine({ ...client, bootstrapBrokers }, requestTimeoutMs, connectTimeoutMs)
  })
  const settings = { choose: choosePartition, retries, maxRequestBytes, requestTimeoutMs }

  async function publish(events: readonly OutboxEvent[], rules: PublishRules = {}) {
    const closesAt = performance.now() + requestTimeoutMs
    const messages = await writeAll(events, write, requestTimeoutMs)
    const batch = new KafkaBatch(events, messages, rules, closesAt)
    const topics = groupBy(batch.admit(batch.entries), ({ event }) => event.topic)
    await Promise.all(
      [...topics].map(([topic, ofTopic]) => {
        const parts = { ...settings, lines: lines.of(topic) }
        return new TopicSend(topic, batch, parts).run(ofTopic)
      }),
    )
    return batch.results()
  }

  return {
    name: 'kafka',
    system: 'kafka',
    orderScope: 'topic',
    // The last request begins before the batch closes. It may have to connect, and to ask for the leaders first.
    settlesWithinMs: 4 * requestTimeoutMs + connectTimeoutMs,
    batchSize: BATCH_SIZE,
    publish,
    connect: () => lines.connect(),
    disconnect: () => lines.disconnect(),
  }
}

const EXAMPLE = "{ client: { clientId: 'orders', bootstrapBrokers: ['localhost:9092'] } }"

function refuseBareClient(given: unknown): void {
  const owner = 'platformaticKafkaPublisher()'
  if (hasMethod(given, 'send')) {
    const remedy = `it makes its own producers, so write platformaticKafkaPublisher(${EXAMPLE})`
    throw missesBraces(owner, 'a producer', remedy)
  }
  if (typeof given === 'object' && given !== null && 'bootstrapBrokers' in given) {
    const remedy = `write platformaticKafkaPublisher(${EXAMPLE})`
    throw missesBraces(owner, 'the options of a client', remedy)
  }
}

function requireClient(client: unknown): void {
  const { bootstrapBrokers } = (client ?? {}) as Partial<TextOptions>
  if (!Array.isArray(bootstrapBrokers) || bootstrapBrokers.length === 0) {
    throw new OutboxOptionsError(
      `platformaticKafkaPublisher() takes client with bootstrapBrokers, e.g. ${EXAMPLE}`,
    )
  }
  const decided = DECIDED.find((name) => name in (client as object))
  if (decided === undefined) return
  const remedy =
    decided === 'retries' || decided === 'requestTimeout'
      ? 'pass it beside client'
      : 'the publisher sets it, so remove it'
  throw new OutboxOptionsError(`client.${decided} cannot be set; ${remedy}`)
}

function openLine(
  client: PlatformaticKafkaPublisherOptions['client'],
  requestTimeoutMs: number,
  connectTimeoutMs: number,
): Line {
  const producer = new Producer<string, string | Buffer, string, string>({
    autocreateTopics: true,
    ...client,
    // How long a leader waits for its replicas. By default 5 s, in which a dead replica is not yet given up.
    timeout: requestTimeoutMs,
    ...(client.sasl && { sasl: recognizeTokenRefusal(client.sasl) }),
    requestTimeout: clientTimeout(requestTimeoutMs),
    retries: 0,
    repeatOnStaleMetadata: false,
    serializers: { key: toBuffer, value: toBuffer, headerKey: toBuffer, headerValue: toBuffer },
  })
  const sockets = new SocketWatch()
  return {
    producer,
    connect: async () => {
      try {
        const asked = sockets.during(() => producer.metadata({ topics: [] }))
        // A frozen broker accepts the connection and never responds; the next line begins with another broker.
        await limit('connecting', 2 * connectTimeoutMs, asked)
      } catch (thrown) {
        throw explainConnect(connectError(thrown, sockets.error))
      }
    },
    disconnect: () => producer.close(),
  }
}

/** The client always asks the first broker that accepts a connection, and a broker that hangs does. */
function rotate<T>(brokers: readonly T[], by: number): T[] {
  const first = by % brokers.length
  return [...brokers.slice(first), ...brokers.slice(0, first)]
}

function toBuffer(data: string | Buffer | undefined): Buffer | undefined {
  return typeof data === 'string' ? Buffer.from(data) : data
}

/** As Java's client and kafkajs do, so that changing the client moves no key. */
function choosePartition(key: string, partitions: number): number {
  return compatibilityPartitioner({} as never, Buffer.from(key)) % partitions
}
