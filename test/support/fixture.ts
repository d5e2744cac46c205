// What most tests on real servers need: a database of the file's own with the outbox table in it, and
// outboxes that are stopped when their test ends.
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { Kafka, type KafkaConfig, logLevel } from 'kafkajs'
import type postgres from 'postgres'
import { afterAll, afterEach, beforeAll, describe, inject } from 'vitest'
import { databaseOf } from '../../src/drivers/database-of.ts'
import type { Executor } from '../../src/drivers/driver.ts'
import {
  type AnyDatabase,
  createOutbox,
  type EventCatalog,
  type Outbox,
  type OutboxOptions,
} from '../../src/index.ts'
import { resolveOptions } from '../../src/options/options.ts'
import { type Handler, handlersPublisher } from '../../src/publishers/handlers.ts'
import { postgresStore } from '../../src/store/outbox/postgres.ts'
import type { Store } from '../../src/store/outbox/outbox-store.ts'
import { grantsScript } from '../../src/store/grants.ts'
import { uniqueName } from './doubles/unique-name.ts'
import { createDatabase, openClient } from './servers/database.ts'
import { drizzleOnPglite, drizzleOnPostgresJs, type TestDriver } from './drivers.ts'

/** Leases that outlast a test on the slowest machine, and a poller that runs when the test says so. */
const UNHURRIED = {
  threshold: '5m',
  publishTimeout: '10s',
  pollInterval: '1h',
  poller: false,
  logger: false,
} as const

/** For tests that watch a lease end: long enough to be kept by a busy machine. */
export const WATCHABLE = { threshold: '2s', publishTimeout: '1s' } as const

type TestOptions<TDb extends AnyDatabase, TEvents extends EventCatalog | undefined> = Partial<
  OutboxOptions<TDb, TEvents>
>

export type Fixture<TDb extends AnyDatabase = PostgresJsDatabase> = {
  /** How tests that run on every driver use a transaction. */
  readonly driver: TestDriver
  readonly url: string
  readonly db: TDb
  /** Raw SQL, past the outbox and its client. On PGlite only as a template, without its methods. */
  readonly sql: postgres.Sql
  /** An outbox on this database, not yet started. */
  outbox<TEvents extends EventCatalog | undefined = undefined>(
    options: TestOptions<TDb, TEvents> & Pick<OutboxOptions, 'publisher'>,
  ): Outbox<TDb, TEvents>
  /** One whose events are handled in process. */
  handling(handlers: Record<string, Handler>, options?: TestOptions<TDb, undefined>): Outbox<TDb>
  /** The statements themselves, for what happens between two steps. */
  store(options?: TestOptions<TDb, undefined>): Store<Executor>
  rows(): Promise<Row[]>
}

type Row = {
  id: string
  seq: string
  aggregate_id: string
  event_type: string
  status: string
  attempts: number
  last_error: string | null
  worker_id: string
  /** Whether the fallback may take it now, by the database's clock. */
  available: boolean
  /** Whether it has a lease, which may be over. */
  leased: boolean
  /** Whether its lease of birth, of WATCHABLE's threshold, would have ended by now. */
  born_lease_over: boolean
}

type Opened = {
  readonly db: AnyDatabase
  readonly sql: postgres.Sql
  readonly url: string
  close(): Promise<void>
}

type FixtureOptions = {
  /** Whether the table has partitions. @default if OUTBOX_TABLE=partitioned */
  readonly partitioned?: boolean
  /** Whether the rows stay from test to test, for a table that takes long to fill. @default false */
  readonly keepRows?: boolean
}

export function useFixture(options: FixtureOptions = {}): Fixture {
  return useFixtureOn(drizzleOnPostgresJs, options) as unknown as Fixture
}

/** The same suite once for each of the drivers. */
export function describeEach(
  drivers: readonly TestDriver[],
  define: (fixture: Fixture<AnyDatabase>) => void,
): void {
  for (const driver of drivers) describe(`on ${driver.name}`, () => define(useFixtureOn(driver)))
}

function useFixtureOn(
  driver: TestDriver,
  {
    partitioned = process.env['OUTBOX_TABLE'] === 'partitioned',
    keepRows = false,
  }: FixtureOptions = {},
): Fixture<AnyDatabase> {
  let opened: Opened
  const outboxes: Pick<Outbox, 'stop'>[] = []

  beforeAll(async () => {
    opened = driver === drizzleOnPglite ? openInProcess() : await openOnServer(driver)
    const publisher = handlersPublisher({ handlers: {} })
    await createOutbox({ db: opened.db, publisher }).migrate({ partitioned })
    if (process.env['OUTBOX_ROLE'] === 'service') opened = await asService(opened, driver)
  })
  afterEach(async () => {
    await Promise.all(outboxes.splice(0).map((outbox) => outbox.stop()))
    if (!keepRows) await opened.sql`truncate outbox`
  })
  afterAll(() => opened.close())

  return {
    driver,
    get url() {
      return opened.url
    },
    get db() {
      return opened.db
    },
    get sql() {
      return opened.sql
    },
    outbox<TEvents extends EventCatalog | undefined>(
      options: TestOptions<AnyDatabase, TEvents> & Pick<OutboxOptions, 'publisher'>,
    ) {
      const outbox = createOutbox<AnyDatabase, TEvents>({ db: opened.db, ...UNHURRIED, ...options })
      outboxes.push(outbox)
      return outbox
    },
    handling(handlers, options = {}) {
      return this.outbox({ publisher: handlersPublisher({ handlers }), ...options })
    },
    store(options = {}) {
      const publisher = handlersPublisher({ handlers: {} })
      const { db } = opened
      return postgresStore(databaseOf(db), resolveOptions({ db, publisher, ...options }))
    },
    async rows() {
      return await opened.sql<Row[]>`
        select id, seq, aggregate_id, event_type, status, attempts, last_error, worker_id,
          available_at <= clock_timestamp() as available, lease_token is not null as leased,
          created_at + interval '2 s' <= clock_timestamp() as born_lease_over
        from outbox order by seq`
    },
  }
}

async function openOnServer(driver: TestDriver): Promise<Opened> {
  const database = await createDatabase()
  // A client of its own: Drizzle replaces the parsers of the one it is given.
  const sql = openClient(database.url)
  const { db, close } = driver.open(database.url)
  return {
    db,
    sql,
    url: database.url,
    async close() {
      await Promise.all([sql.end({ timeout: 0 }), close()])
      await database.drop()
    },
  }
}

/** The same database, used by a role that has no more rights than `aftercommit grants` gives it. */
async function asService(owned: Opened, driver: TestDriver): Promise<Opened> {
  if (owned.url === '') return owned
  const role = uniqueName('service')
  const url = new URL(owned.url)
  url.username = role
  url.password = role
  await owned.sql.unsafe(`create role "${role}" login password '${role}';
    ${grantsScript({ schema: 'public', name: 'outbox' }, role, 'service')};
    alter default privileges in schema public grant all on tables to "${role}";
    alter default privileges in schema public grant all on sequences to "${role}"`)
  const { db, close } = driver.open(url.href)
  return {
    ...owned,
    db,
    async close() {
      await close()
      await owned.sql.unsafe(`drop owned by "${role}"; drop role "${role}"`)
      await owned.close()
    },
  }
}

function openInProcess(): Opened {
  const { client, db, close } = drizzleOnPglite.open()
  const sql = async (strings: TemplateStringsArray, ...values: unknown[]) => {
    const text = strings.reduce((before, part, n) => `${before}$${n}${part}`)
    return (await client.query(text, values)).rows
  }
  return { db, sql: sql as unknown as postgres.Sql, url: '', close }
}

/** A suite that needs the shared broker; without one it is skipped by name. */
export const describeWithKafka = describe.skipIf(inject('kafkaMissing') !== null)

/** A suite that kills or freezes a broker, and so has to start its own. */
export const describeWithOwnKafka = describe.skipIf(inject('ownKafkaMissing') !== null)

/** A suite that needs RabbitMQ; without one it is skipped by name. */
export const describeWithRabbit = describe.skipIf(inject('rabbitMissing') !== null)

export function rabbitUrl(): string {
  return inject('rabbitUrl') ?? ''
}

export function kafkaBrokers(): string[] {
  return inject('kafkaBrokers') ?? []
}

export function quietKafka(brokers: string[], config: Partial<KafkaConfig> = {}): Kafka {
  return new Kafka({ brokers, logLevel: logLevel.NOTHING, ...config })
}
