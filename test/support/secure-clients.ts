// Both Kafka clients on a listener with TLS and SASL, set up alike.
import type { SASLOptions } from 'kafkajs'
import type { Publisher } from '../../src/index.ts'
import { kafkaPublisher } from '../../src/publishers/kafka/kafka-publisher.ts'
import { platformaticKafkaPublisher } from '../../src/publishers/platformatic-kafka/platformatic-kafka-publisher.ts'
import { quietKafka } from './fixture.ts'

export type Login =
  | {
      readonly mechanism: 'PLAIN' | 'SCRAM-SHA-256' | 'SCRAM-SHA-512'
      readonly username: string
      readonly password: string
    }
  | {
      readonly mechanism: 'OAUTHBEARER'
      /** Called for each new session. */
      readonly token: () => Promise<string>
    }

export interface SecureClient {
  readonly name: string
  /** Without `ca` the client trusts only the authorities that Node knows. */
  readonly publisher: (brokers: string[], ca?: string, login?: Login) => Publisher
  /** What it says of a token that has expired. kafkajs takes the refusal for a success, and fails afterwards. */
  readonly onExpiredToken: RegExp
}

const REQUEST_MS = 3_000

export const SECURE_CLIENTS: readonly SecureClient[] = [
  {
    name: 'kafkajs',
    onExpiredToken: /^Kafka refused the credentials \(ILLEGAL_SASL_STATE\): the token /,
    publisher(brokers, ca, login) {
      const kafka = quietKafka(brokers, {
        ssl: ca === undefined ? true : { ca },
        connectionTimeout: 1_000,
        requestTimeout: REQUEST_MS,
        // A session of the tests is shorter than the ten seconds that are the default.
        reauthenticationThreshold: 1_000,
        retry: { retries: 0 },
        ...(login && { sasl: saslOf(login) }),
      })
      return kafkaPublisher({ kafka, requestTimeout: REQUEST_MS })
    },
  },
  {
    name: '@platformatic/kafka',
    onExpiredToken: /^Kafka refused the credentials: invalid_token/,
    publisher: (bootstrapBrokers, ca, login) =>
      platformaticKafkaPublisher({
        client: {
          clientId: 'test',
          bootstrapBrokers,
          tls: ca === undefined ? {} : { ca },
          ...(login && { sasl: login }),
        },
        requestTimeout: REQUEST_MS,
      }),
  },
]

function saslOf(login: Login): SASLOptions {
  if (login.mechanism === 'OAUTHBEARER') {
    const oauthBearerProvider = async () => ({ value: await login.token() })
    return { mechanism: 'oauthbearer', oauthBearerProvider }
  }
  const { mechanism, ...user } = login
  const lower = mechanism.toLowerCase() as 'plain' | 'scram-sha-256' | 'scram-sha-512'
  return { mechanism: lower, ...user }
}
