// The databases that an outbox can be given, each with its own way to run a statement and to nest: for tests that
// make the same promise on all of them.
import { PGlite } from '@electric-sql/pglite'
import { PrismaPg } from '@prisma/adapter-pg'
import { sql as raw } from 'drizzle-orm'
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite'
import { drizzle as drizzlePostgresJs, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { type Knex, knex } from 'knex'
import { CompiledQuery, Kysely, PostgresDialect, type Transaction } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import { DataSource, type EntityManager } from 'typeorm'
import { knexDatabase } from '../../src/drivers/knex.ts'
import { prismaDatabase, type PrismaDatabaseClient } from '../../src/drivers/prisma.ts'
import { typeormDatabase } from '../../src/drivers/typeorm.ts'
import { kyselyDatabase } from '../../src/drivers/kysely.ts'
import { nodePostgres, type NodePostgresTransaction } from '../../src/drivers/node-postgres.ts'
import { postgresJs } from '../../src/drivers/postgres-js.ts'
import { PrismaClient } from './prisma/generated/client.ts'
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
    // A connection that closes while it writes is of no use until its attempts to connect have timed out.
    connect_timeout: 3,
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

/** As docs/operations.md asks: a connection that dies in a transaction tells of it here. */
function openListenedPool(url: string, settings: Settings) {
  const opened = openPool(url, settings)
  opened.pool.on('connect', (client) => client.on('error', () => {}))
  return opened
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
    const { pool } = openListenedPool(url, settings)
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

type KyselyBuilder = {
  setIsolationLevel(level: string): KyselyBuilder
  execute(work: unknown): Promise<never>
}
type KyselyHandle = { transaction(): KyselyBuilder }

const onKysely: TestDriver = {
  name: 'Kysely',
  ...savepoints,
  query: async (tx, text) =>
    (await (tx as Transaction<unknown>).executeQuery<Rows[number]>(CompiledQuery.raw(text))).rows,
  begin: (db, work) => (db as { client: KyselyHandle }).client.transaction().execute(work),
  beginOn: (handle, work, isolation) => {
    const builder = (handle as KyselyHandle).transaction()
    return (isolation ? builder.setIsolationLevel(isolation) : builder).execute(work)
  },
  open(url, settings = {}) {
    const { pool } = openListenedPool(url, settings)
    const db = new Kysely({ dialect: new PostgresDialect({ pool }) })
    return { db: kyselyDatabase(db), close: () => pool.end() }
  },
}

const onKnex: TestDriver = {
  name: 'Knex',
  query: async (tx, text) => (await (tx as Knex).raw<{ rows: Rows }>(text)).rows,
  nest: (tx, work) => (tx as Nests).transaction(work),
  begin: (db, work) => (db as { client: Nests }).client.transaction(work),
  beginOn: (handle, work, isolationLevel) =>
    (handle as Nests).transaction(work, isolationLevel ? { isolationLevel } : undefined),
  open(url, { max = 10 } = {}) {
    const db = knex({ client: 'pg', connection: url, pool: { min: 0, max } })
    return { db: knexDatabase(db), close: () => db.destroy() }
  },
}

const onTypeorm: TestDriver = {
  name: 'TypeORM',
  query: async (tx, text) => await (tx as EntityManager).query<Rows>(text),
  nest: (tx, work) => (tx as Nests).transaction(work),
  begin: (db, work) => (db as { client: Nests }).client.transaction(work),
  beginOn: (handle, work, isolation) =>
    isolation
      ? (handle as Nests).transaction(isolation.toUpperCase(), work)
      : (handle as Nests).transaction(work),
  open(url, { max } = {}) {
    const source = new DataSource({ type: 'postgres', url, ...(max && { poolSize: max }) })
    const initialized = source.initialize()
    initialized.catch(() => {})
    // An application awaits initialize(), and open() cannot.
    const driver = source.driver as unknown as TypeormDriver
    const obtain = driver.obtainMasterConnection.bind(driver)
    driver.obtainMasterConnection = async () => {
      if (!driver.master) await initialized
      return await obtain()
    }
    const close = () => initialized.then(() => source.destroy()).catch(() => {})
    return { db: typeormDatabase(source), close }
  },
}

interface TypeormDriver {
  readonly master?: unknown
  obtainMasterConnection(): Promise<unknown>
}

type NestsInPrisma = { $transaction: (work: unknown, options?: unknown) => Promise<never> }

const onPrisma: TestDriver = {
  name: 'Prisma',
  query: async (tx, text) => (await (tx as PrismaDatabaseClient).$queryRawUnsafe(text)) as Rows,
  nest: (tx, work) => (tx as NestsInPrisma).$transaction(work),
  begin: (db, work) =>
    (db as { client: NestsInPrisma }).client.$transaction(work, { timeout: 120_000 }),
  beginOn: (handle, work, isolation) =>
    (handle as NestsInPrisma).$transaction(work, isolation && { isolationLevel: 'Serializable' }),
  open(url, settings = {}) {
    const { pool } = openListenedPool(url, settings)
    const prisma = new PrismaClient({ adapter: new PrismaPg(pool) })
    const limits = { timeout: 120_000, maxWait: 60_000 }
    return {
      db: prismaDatabase(prisma, limits),
      close: async () => {
        await prisma.$disconnect()
        await pool.end()
      },
    }
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

/** For what depends on the client under a query builder, and takes long. */
export const CLIENT_DRIVERS: readonly TestDriver[] = [
  drizzleOnPostgresJs,
  drizzleOnNodePostgres,
  onPostgresJs,
  onNodePostgres,
]

const BUILDER_DRIVERS: readonly TestDriver[] = [onKysely, onKnex, onTypeorm, onPrisma]

/**
 * Those with many sessions at a time, on a server that tests may be cut off from. OUTBOX_DRIVERS=clients leaves out query
 * builders and ORMs.
 */
export const SERVED_DRIVERS: readonly TestDriver[] =
  process.env['OUTBOX_DRIVERS'] === 'clients'
    ? CLIENT_DRIVERS
    : [...CLIENT_DRIVERS, ...BUILDER_DRIVERS]

/** Whether a client sends COMMIT, in its own spelling. */
export const isCommit = (chunk: Buffer) => /commit;?\0/i.test(chunk.toString('latin1'))

/** What they say of a connection that broke at COMMIT. Some tell of the ROLLBACK that they try next. */
export const CONNECTION_LOST =
  /CONNECTION_CLOSED|Connection terminated|Failed query: rollback|not queryable/

export const ALL_DRIVERS: readonly TestDriver[] = [...SERVED_DRIVERS, drizzleOnPglite]
