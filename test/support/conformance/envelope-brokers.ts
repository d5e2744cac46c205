// Both brokers in one shape, for tests of what a message looks like on each: a publisher with an envelope, a place to
// send to, and a plain consumer that says exactly what arrived there.
import type { Envelope, Publisher } from '../../../src/index.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import { rabbitmqPublisher } from '../../../src/publishers/rabbitmq/rabbitmq-publisher.ts'
import { kafkaBrokers, quietKafka, rabbitUrl } from '../fixture.ts'
import { openRabbit } from '../servers/rabbitmq.ts'
import { createTopic, readTopic } from '../servers/topic-reader.ts'
import { uniqueName } from '../doubles/unique-name.ts'

export type Arrived = {
  readonly value: string
  readonly bytes: Buffer
  readonly headers: Record<string, string>
  /** The header of Kafka, the property of RabbitMQ. */
  readonly contentType: string | undefined
}

export type Broker = {
  readonly publisher: (envelope?: Envelope) => Publisher
  readonly openTopic: () => Promise<string>
  readonly read: (topic: string) => Promise<readonly Arrived[]>
  readonly attributePrefix: string
  /** What a plain message says that it is. */
  readonly jsonType: string | undefined
  readonly close: () => Promise<void>
}

export async function openKafka(): Promise<Broker> {
  return {
    publisher: (envelope) =>
      kafkaPublisher({ kafka: quietKafka(kafkaBrokers()), ...(envelope && { envelope }) }),
    async openTopic() {
      const topic = uniqueName('envelopes')
      await createTopic(kafkaBrokers(), topic)
      return topic
    },
    async read(topic) {
      const reader = await readTopic(kafkaBrokers(), topic)
      try {
        return (await reader.readToEnd()).map(({ value, bytes, headers: all }) => {
          const { 'content-type': contentType, ...headers } = all
          return { value: value!, bytes: bytes!, headers, contentType }
        })
      } finally {
        await reader.stop()
      }
    },
    attributePrefix: 'ce_',
    jsonType: undefined,
    close: async () => {},
  }
}

export async function openRabbitmq(): Promise<Broker> {
  const far = await openRabbit(rabbitUrl())
  return {
    publisher: (envelope) => rabbitmqPublisher({ url: rabbitUrl(), ...(envelope && { envelope }) }),
    openTopic: () => far.declareQueue(),
    async read(topic) {
      return (await far.read(topic)).map(({ value, bytes, headers, properties }) => {
        const contentType = properties['contentType'] as string | undefined
        return { value, bytes, headers, contentType }
      })
    },
    attributePrefix: 'cloudEvents:',
    jsonType: 'application/json',
    close: () => far.close(),
  }
}
