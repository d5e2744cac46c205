// A service that starts, stops, and has nothing else to do.
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { createOutbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'

const [url] = process.argv.slice(2) as [string]
const client = postgres(url)
const outbox = createOutbox({
  db: drizzle(client),
  publisher: handlersPublisher({ handlers: {} }),
})
await outbox.start()
await outbox.stop()
await client.end()
console.log('stopped')
// Keeps nobody alive; it is heard of only if something else does.
setTimeout(() => {
  console.log('still alive')
  process.exit(1)
}, 10_000).unref()
