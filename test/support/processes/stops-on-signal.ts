// A service that is asked to end while a handler runs.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { createOutbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'

const publisher = handlersPublisher({
  handlers: {
    OrderCompleted: async () => {
      console.log('handling')
      process.kill(process.pid, 'SIGTERM')
      // The signal has arrived when its listeners are gone: stop() is under way.
      while (process.listenerCount('SIGTERM') > 0) await nextTurn()
      await idle.stop()
      await nextTurn()
      console.log('handled')
    },
  },
})
const [url] = process.argv.slice(2) as [string]
const outbox = createOutbox({ db: drizzle(postgres(url)), publisher })
outbox.stopOnSignals()
await outbox.start()
// Another one, which has nothing to do and stops at once.
const idle = createOutbox({ db: drizzle(postgres(url)), publisher })
idle.stopOnSignals()
await idle.start()
await outbox.withOutbox((_, emit) => {
  emit({ type: 'OrderCompleted', aggregateType: 'order', aggregateId: '1', payload: {} })
})
