// kafkajs, with its acks noted.
import { Kafka, logLevel, type Producer, type ProducerConfig } from 'kafkajs'
import type { Acks } from './acks.ts'
import { messageOf, type Sender, type Stage } from './contender.ts'

/** The client of all contenders, except those named after another one. */
export function measuredKafka(brokers: readonly string[], acks: Acks): Pick<Kafka, 'producer'> {
  const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING })
  return {
    producer(config?: ProducerConfig): Producer {
      const producer = kafka.producer(config)
      return {
        ...producer,
        async send(record) {
          const metadata = await producer.send(record)
          acks.note(record.messages)
          return metadata
        },
        async sendBatch(batch) {
          const metadata = await producer.sendBatch(batch)
          for (const { messages } of batch.topicMessages ?? []) acks.note(messages)
          return metadata
        },
      }
    },
  }
}

export function kafkajsSender({ kafka, topic }: Stage): Sender {
  const producer = kafka.producer()
  return {
    connect: () => producer.connect(),
    send: (events) => producer.send({ topic, acks: -1, messages: events.map(messageOf) }),
    disconnect: () => producer.disconnect(),
  }
}
