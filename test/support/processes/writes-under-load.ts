// A service on one of Drizzle's stacks, as the README sets it up: units of work side by side, begun by the outbox and by the
// application on outbox.db. Prints how many have committed. What is not caught anywhere ends it.
import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'drizzle-orm'
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePostgresJs, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import pg from 'pg'
import postgres from 'postgres'
import { createOutbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'

const [url, stack] = process.argv.slice(2) as [string, 'postgres-js' | 'node-postgres']
const CONCURRENT = 8
const REPORT_EVERY_MS = 50

function openDatabase(): PostgresJsDatabase {
  if (stack === 'postgres-js') {
    return drizzlePostgresJs(postgres(url, { backoff: () => 0.05, connect_timeout: 2 }))
  }
  const pool = new pg.Pool({ connectionString: url, connectionTimeoutMillis: 2_000 })
  // As its documentation asks, and nothing else.
  pool.on('error', () => {})
  return drizzleNodePostgres(pool) as unknown as PostgresJsDatabase
}

const outbox = createOutbox({
  db: openDatabase(),
  publisher: handlersPublisher({ handlers: { Written: () => {} } }),
  migrate: true,
  pollInterval: '200ms',
  threshold: '2s',
  publishTimeout: '1s',
  logger: false,
})
await outbox.start()

let committed = 0

async function keepWriting(writer: number): Promise<void> {
  for (let n = 0; ; n += 1) {
    const event = {
      type: 'Written',
      aggregateType: 'writer',
      aggregateId: `${writer}-${n % 5}`,
      payload: n,
    }
    const work = async (tx: Pick<PostgresJsDatabase, 'execute' | 'transaction'>) => {
      outbox.emit(event)
      await tx.execute(sql`select pg_sleep(0.002)`)
      await tx.transaction((inner) => inner.execute(sql`select 1`))
    }
    try {
      if (n % 2) await outbox.withOutbox(work)
      else await outbox.db.transaction(work)
      committed += 1
    } catch {
      await delay(10)
    }
  }
}

for (let writer = 0; writer < CONCURRENT; writer += 1) void keepWriting(writer)
setInterval(() => process.stdout.write(`${committed}\n`), REPORT_EVERY_MS)
