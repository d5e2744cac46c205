// The Kafka clients that the publishers are built on, for promises that hold with each of them. Free of vitest, so that the
// processes of test/support/processes and the workers of the torture open the same publishers as the tests.
import { Kafka, logLevel } from 'kafkajs'
import type { Envelope, Publisher } from '../../src/index.ts'
import { kafkaPublisher } from '../../src/publishers/kafka/kafka-publisher.ts'
import { platformaticKafkaPublisher } from '../../src/publishers/platformatic-kafka/platformatic-kafka-publisher.ts'

export const KAFKA_CLIENT_NAMES = ['kafkajs', 'platformatic'] as const
export type KafkaClientName = (typeof KAFKA_CLIENT_NAMES)[number]

interface KafkaClientOptions {
  /** 0 is for tests in which the broker is away. */
  readonly retries?: number
  readonly envelope?: Envelope
  /** @default the client's own */
  readonly requestMs?: number
  /** @default the client's own */
  readonly connectMs?: number
  /** How often the client asks for a topic's partitions unprompted. @default the client's own */
  readonly metadataMs?: number
}

export interface KafkaClient {
  readonly name: KafkaClientName
  /** The package, for the names of tests. */
  readonly title: string
  readonly publisher: (brokers: readonly string[], options?: KafkaClientOptions) => Publisher
}

const CLIENTS: Record<KafkaClientName, KafkaClient> = {
  kafkajs: {
    name: 'kafkajs',
    title: 'kafkajs',
    publisher(brokers, { requestMs, connectMs, metadataMs, ...options } = {}) {
      const kafka = new Kafka({
        brokers: [...brokers],
        logLevel: logLevel.NOTHING,
        ...(requestMs !== undefined && { requestTimeout: requestMs }),
        ...(connectMs !== undefined && { connectionTimeout: connectMs }),
        ...(options.retries === 0 && { retry: { retries: 1, initialRetryTime: 50 } }),
      })
      return kafkaPublisher({
        ...options,
        kafka: {
          producer: (config = {}) => {
            const age = metadataMs === undefined ? {} : { metadataMaxAge: metadataMs }
            return kafka.producer({ ...config, ...age })
          },
        },
        ...(requestMs !== undefined && { requestTimeout: requestMs }),
      })
    },
  },
  platformatic: {
    name: 'platformatic',
    title: '@platformatic/kafka',
    publisher: (brokers, { requestMs, connectMs, metadataMs, ...options } = {}) =>
      platformaticKafkaPublisher({
        ...options,
        client: {
          clientId: 'test',
          bootstrapBrokers: [...brokers],
          ...(connectMs !== undefined && { connectTimeout: connectMs }),
          ...(metadataMs !== undefined && { metadataMaxAge: metadataMs }),
        },
        ...(requestMs !== undefined && { requestTimeout: requestMs }),
      }),
  },
}

const chosen = process.env['KAFKA_CLIENT'] || null

/** Every client, or the one that KAFKA_CLIENT names. */
export const kafkaClients: readonly KafkaClient[] =
  chosen === null ? Object.values(CLIENTS) : [kafkaClient(chosen)]

/** For tests that take long: kafkajs, or the client that KAFKA_CLIENT names. The matrix runs them with the other one. */
export const oneKafkaClient: KafkaClient = kafkaClients[0]!

export function kafkaClient(name: string): KafkaClient {
  const known = KAFKA_CLIENT_NAMES.find((one) => one === name)
  if (known) return CLIENTS[known]
  throw new Error(`a Kafka client must be one of ${KAFKA_CLIENT_NAMES.join(', ')}, got '${name}'`)
}
