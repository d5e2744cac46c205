// A service whose event reached the broker, and that is killed before it could record so.
import { drizzle } from 'drizzle-orm/postgres-js'
import { Kafka, logLevel } from 'kafkajs'
import postgres from 'postgres'
import { createOutbox } from '../../../src/index.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'

const [url, broker, topic] = process.argv.slice(2) as [string, string, string]
const kafka = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING })
const real = kafkaPublisher({ kafka })
const outbox = createOutbox({
  db: drizzle(postgres(url)),
  publisher: {
    ...real,
    async publish(events) {
      await real.publish(events)
      process.kill(process.pid, 'SIGKILL')
      return await new Promise(() => {})
    },
  },
})
await outbox.start()
await outbox.withOutbox((_, emit) => {
  emit({ type: 'OrderCompleted', aggregateType: 'order', aggregateId: '1', topic, payload: {} })
})
