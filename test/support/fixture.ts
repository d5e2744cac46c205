// What most tests on real servers need: a database of the file's own with the outbox table in it, and
// outboxes that are stopped when their test ends.
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { Kafka, type KafkaConfig, logLevel } from 'kafkajs'
import type postgres from 'postgres'
import { afterAll, afterEach, beforeAll, describe, inject } from 'vitest'
import {
  createOutbox,
  type EventCatalog,
  type Outbox,
  type OutboxOptions,
} from '../../src/index.ts'
import { resolveOptions } from '../../src/options.ts'
import { type Handler, handlersPublisher } from '../../src/publishers/handlers.ts'
import { databaseOf } from '../../src/drivers/database-of.ts'
import type { Executor } from '../../src/drivers/driver.ts'
import { postgresStore } from '../../src/store/postgres.ts'
import type { Store } from '../../src/store/store.ts'
import { connect, createDatabase, type TestConnection, type TestDatabase } from './database.ts'

/** Leases that outlast a test on the slowest machine, and a poller that runs when the test says so. */
const UNHURRIED = {
  threshold: '5m',
  publishTimeout: '10s',
  pollInterval: '1h',
  poller: false,
} as const

/** For tests that watch a lease end: long enough to be kept by a busy machine. */
export const WATCHABLE = { threshold: '2s', publishTimeout: '1s' } as const

type TestOptions<TEvents extends EventCatalog | undefined = undefined> = Partial<
  OutboxOptions<PostgresJsDatabase, TEvents>
>

export type Fixture = {
  readonly url: string
  readonly db: PostgresJsDatabase
  /** Raw SQL, past the outbox. */
  readonly sql: postgres.Sql
  /** An outbox on this database, not yet started. */
  outbox<TEvents extends EventCatalog | undefined = undefined>(
    options: TestOptions<TEvents> & Pick<OutboxOptions, 'publisher'>,
  ): Outbox<PostgresJsDatabase, TEvents>
  /** One whose events are handled in process. */
  handling(handlers: Record<string, Handler>, options?: TestOptions): Outbox<PostgresJsDatabase>
  /** The statements themselves, for what happens between two steps. */
  store(options?: TestOptions): Store<Executor>
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
  /** Whether its lease of birth, of WATCHABLE's threshold, would have ended by now. */
  born_lease_over: boolean
}

export function useFixture(): Fixture {
  let database: TestDatabase
  let connection: TestConnection
  const outboxes: Pick<Outbox, 'stop'>[] = []

  beforeAll(async () => {
    database = await createDatabase()
    connection = connect(database.url)
    const publisher = handlersPublisher({ handlers: {} })
    await createOutbox({ db: connection.db, publisher }).migrate()
  })
  afterEach(async () => {
    await Promise.all(outboxes.splice(0).map((outbox) => outbox.stop()))
    await connection.client`truncate outbox`
  })
  afterAll(async () => {
    await connection.close()
    await database.drop()
  })

  return {
    get url() {
      return database.url
    },
    get db() {
      return connection.db
    },
    get sql() {
      return connection.client
    },
    outbox<TEvents extends EventCatalog | undefined>(
      options: TestOptions<TEvents> & Pick<OutboxOptions, 'publisher'>,
    ) {
      const outbox = createOutbox<PostgresJsDatabase, TEvents>({
        db: connection.db,
        ...UNHURRIED,
        ...options,
      })
      outboxes.push(outbox)
      return outbox
    },
    handling(handlers, options = {}) {
      return this.outbox({ publisher: handlersPublisher({ handlers }), ...options })
    },
    store(options = {}) {
      const publisher = handlersPublisher({ handlers: {} })
      return postgresStore(
        databaseOf(connection.db),
        resolveOptions({ db: connection.db, publisher, ...options }),
      )
    },
    async rows() {
      return await connection.client<Row[]>`
        select id, seq, aggregate_id, event_type, status, attempts, last_error, worker_id,
          available_at <= clock_timestamp() as available,
          created_at + interval '2 s' <= clock_timestamp() as born_lease_over
        from outbox order by seq`
    },
  }
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
