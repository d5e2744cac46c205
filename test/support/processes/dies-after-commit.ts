// A service that commits one event and is killed before it could send it: kill -9, from the inside, at
// the first moment after COMMIT.
import { drizzle } from 'drizzle-orm/postgres-js'
import { Kafka, logLevel } from 'kafkajs'
import postgres from 'postgres'
import { createOutbox } from '../../../src/index.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'

const [url, broker, topic, threshold] = process.argv.slice(2) as [
  string,
  string,
  string,
  `${number}s`,
]
const kafka = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING })
const outbox = createOutbox({
  db: drizzle(postgres(url)),
  publisher: kafkaPublisher({ kafka }),
  threshold,
  publishTimeout: '500ms',
  workerId: 'the one that dies',
})
await outbox.start()
outbox.events.on('event:saved', () => process.kill(process.pid, 'SIGKILL'))
await outbox.withOutbox((_, emit) => {
  emit({ type: 'OrderCompleted', aggregateType: 'order', aggregateId: '1', topic, payload: {} })
})
