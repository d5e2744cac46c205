// The databases that an outbox can be given, each with its own way to run a statement and to nest: for tests that
// make the same promise on all of them.
import { PGlite } from '@electric-sql/pglite'
import { sql as raw } from 'drizzle-orm'
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite'
import { drizzle as drizzlePostgresJs, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import pg from 'pg'
import postgres from 'postgres'
import { nodePostgres, type NodePostgresTransaction } from '../../src/drivers/node-postgres.ts'
import { postgresJs } from '../../src/drivers/postgres-js.ts'
import type { AnyDatabase, DrizzleDatabase } from '../../src/index.ts'

type Rows = Record<string, unknown>[]
/** Whether statements are prepared is a question to postgres.js alone. */
type Settings = { max?: number; prepare?: boolean }

export type OpenedDatabase<TDb extends AnyDatabase> = {
  readonly db: TDb
  readonly close: () => Promise<void>
}

export type TestDriver<TDb extends AnyDatabase = AnyDatabase> = {
  readonly name: string
  /** On the database behind the URL. */
  open(url: string, settings?: Settings): OpenedDatabase<TDb>
  /** Runs a statement in a transaction that this driver handed out. */
  readonly query: (tx: unknown, text: string) => Promise<Rows>
  readonly nest: <T>(tx: unknown, work: (inner: never) => Promise<T>) => Promise<T>
  /** A transaction as an application begins it on its own, past the outbox. */
  readonly begin: <T>(db: unknown, work: (tx: never) => Promise<T>) => Promise<T>
  /** How an application begins one on `outbox.db`. Missing where the client has no such function. */
  readonly beginOn?: <T>(
    handle: unknown,
    work: (tx: never) => Promise<T>,
    isolation?: 'serializable',
  ) => Promise<T>
}

type Nests = { transaction: (work: unknown, config?: unknown) => Promise<never> }
type Begins = { begin: (...given: unknown[]) => Promise<never> }
type NestsNatively = { savepoint: (work: unknown) => Promise<never> }

const drizzled = {
  query: async (tx: unknown, text: string) => {
    const result = await (tx as DrizzleDatabase).execute(raw.raw(text))
    return (Array.isArray(result) ? result : (result as { rows: Rows }).rows) as Rows
  },
  nest: (tx: unknown, work: unknown) => (tx as Nests).transaction(work),
  begin: (db: unknown, work: unknown) => (db as Nests).transaction(work),
  beginOn: (handle: unknown, work: unknown, isolationLevel?: string) =>
    (handle as Nests).transaction(work, isolationLevel ? { isolationLevel } : undefined),
}
const savepoints = { nest: (tx: unknown, work: unknown) => (tx as NestsNatively).savepoint(work) }

function openClient(url: string, settings: Settings) {
  const client = postgres(url, {
    onnotice: () => {},
    backoff: () => 0,
    fetch_types: false,
    ...settings,
  })
  // Without grace: postgres.js would wait in vain for a connection cut inside a transaction.
  return { client, close: () => client.end({ timeout: 0 }) }
}

function openPool(url: string, { max }: Settings) {
  const pool = new pg.Pool({ connectionString: url, ...(max && { max }) })
  pool.on('error', () => {})
  return { pool, close: () => pool.end() }
}

export const drizzleOnPostgresJs: TestDriver<PostgresJsDatabase> = {
  name: 'Drizzle on postgres-js',
  ...drizzled,
  open(url, settings = {}) {
    const { client, close } = openClient(url, settings)
    return { db: drizzlePostgresJs(client), close }
  },
}

export const drizzleOnNodePostgres: TestDriver = {
  name: 'Drizzle on node-postgres',
  ...drizzled,
  open(url, settings = {}) {
    const { pool } = openPool(url, settings)
    // As docs/operations.md asks: a connection that dies in a transaction tells of it here.
    pool.on('connect', (client) => client.on('error', () => {}))
    // Drizzle never returns a connection on which BEGIN failed (drizzle-orm#6241), and the pool's end would
    // wait for it.
    return { db: drizzleNodePostgres(pool), close: async () => void pool.end() }
  },
}

export const onPostgresJs: TestDriver = {
  name: 'postgres.js',
  ...savepoints,
  query: async (tx, text) => [...(await (tx as postgres.TransactionSql).unsafe(text))],
  begin: (db, work) => (db as { client: Begins }).client.begin(work),
  beginOn: (handle, work, isolation) =>
    isolation
      ? (handle as Begins).begin(`isolation level ${isolation}`, work)
      : (handle as Begins).begin(work),
  open(url, settings = {}) {
    const { client, close } = openClient(url, settings)
    return { db: postgresJs(client), close }
  },
}

export const onNodePostgres: TestDriver = {
  name: 'node-postgres',
  ...savepoints,
  query: async (tx, text) => (await (tx as NodePostgresTransaction).query<Rows[number]>(text)).rows,
  async begin(db, work) {
    const client = await (db as { client: pg.Pool }).client.connect()
    let broken: Error | undefined
    const noteBroken = (error: Error) => (broken ??= error)
    client.on('error', noteBroken)
    try {
      await client.query('BEGIN')
      const result = await work(client as never)
      await client.query('COMMIT')
      return result
    } catch (error) {
      await client.query('ROLLBACK').catch(noteBroken)
      throw error
    } finally {
      client.off('error', noteBroken)
      client.release(broken)
    }
  },
  open(url, settings = {}) {
    const { pool, close } = openPool(url, settings)
    return { db: nodePostgres(pool), close }
  },
}

/** A database in this very process: one session, and no server to lose. */
export const drizzleOnPglite = {
  name: 'Drizzle on PGlite',
  ...drizzled,
  open() {
    const client = new PGlite()
    return { client, db: drizzlePglite(client), close: () => client.close() }
  },
}

/** Those with many sessions at a time, on a server that tests may be cut off from. */
export const SERVED_DRIVERS: readonly TestDriver[] = [
  drizzleOnPostgresJs,
  drizzleOnNodePostgres,
  onPostgresJs,
  onNodePostgres,
]

export const ALL_DRIVERS: readonly TestDriver[] = [...SERVED_DRIVERS, drizzleOnPglite]
