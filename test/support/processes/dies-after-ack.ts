// A service whose event reached the broker, and that is killed before it could record so.
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { createOutbox } from '../../../src/index.ts'
import { kafkaClient } from '../kafka-clients.ts'

const [url, broker, topic, client] = process.argv.slice(2) as [string, string, string, string]
const real = kafkaClient(client).publisher([broker])
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
