// A function: an outbox that is never started, a unit of work, flush(), an answer. Its end has to come by itself.
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { createOutbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { newEvent } from '../doubles/sample-events.ts'
import { defer } from '../timing/deferred.ts'

const [url, mode] = process.argv.slice(2) as [string, 'hang' | undefined]
const client = postgres(url)
const begun = defer()
const handler = () => {
  begun.resolve()
  return mode === 'hang' ? new Promise<void>(() => {}) : undefined
}
const outbox = createOutbox({
  db: drizzle(client),
  publisher: handlersPublisher({ handlers: { OrderCompleted: handler } }),
  // What hangs is given up only after it was reported, also on a busy machine.
  threshold: '6s',
  publishTimeout: '5s',
})
await outbox.withOutbox(async (_, emit) => emit(newEvent()))
const flushed = outbox.flush({ timeout: '30s' })
if (mode === 'hang') {
  await begun.promise
  const { left } = await outbox.flush({ timeout: '2s' })
  console.log(`left ${left.map(({ reason }) => reason).join()}`)
} else {
  const { delivered } = await flushed
  const drained = await outbox.drain()
  console.log(`flushed ${delivered.length}, drained ${drained.delivered}`)
  await client.end()
}
// Keeps nobody alive; it is heard of only if something else does.
setTimeout(() => {
  console.log('still alive')
  process.exit(1)
}, 10_000).unref()
