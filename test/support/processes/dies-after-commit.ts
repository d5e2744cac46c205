// A service that commits one event and is killed before it could send it: kill -9, from the inside, at
// the first moment after COMMIT.
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { createOutbox } from '../../../src/index.ts'
import { kafkaClient } from '../kafka-clients.ts'

const [url, broker, topic, threshold, client] = process.argv.slice(2) as [
  string,
  string,
  string,
  `${number}s`,
  string,
]
const outbox = createOutbox({
  db: drizzle(postgres(url)),
  publisher: kafkaClient(client).publisher([broker]),
  threshold,
  publishTimeout: '500ms',
  workerId: 'the one that dies',
})
await outbox.start()
outbox.events.on('event:saved', () => process.kill(process.pid, 'SIGKILL'))
await outbox.withOutbox((_, emit) => {
  emit({ type: 'OrderCompleted', aggregateType: 'order', aggregateId: '1', topic, payload: {} })
})
