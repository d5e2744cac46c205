// A Postgres that writes a logical log, an outbox table prepared as `aftercommit cdc-config` says, and a Kafka Connect
// worker with the connector that it prints. Knows nothing of vitest, so that a tool can use it too.
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { Kafka, logLevel } from 'kafkajs'
import postgres from 'postgres'
import { createOutbox, type Outbox, type OutboxOptions } from '../../../src/index.ts'
import { cdcConnector, cdcSql } from '../../../src/publishers/debezium/cdc.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import { createKafkaConnect, type KafkaConnect } from '../servers/kafka-connect.ts'
import { type PostgresServer, startPostgres } from '../servers/postgres-server.ts'
import { waitUntil } from '../timing/wait-until.ts'

type Options = Partial<OutboxOptions<PostgresJsDatabase>>

export type CdcStack = {
  readonly server: PostgresServer
  readonly sql: postgres.Sql
  readonly connect: KafkaConnect
  /** The name of the connector and of its slot. */
  readonly slot: string
  /** An outbox whose events the connector relays, not yet started. */
  cdcOutbox(options?: Options): Outbox<PostgresJsDatabase>
  /** One that relays by itself, on the same table. */
  ownOutbox(options?: Options): Outbox<PostgresJsDatabase>
  /** Starts the worker. Resolves when it reads the slot. */
  startConnector(): Promise<void>
  isSlotActive(): Promise<boolean>
  stopOutboxes(): Promise<void>
  stop(): Promise<void>
}

export type StackOptions = {
  readonly partitioned?: boolean
  readonly schema?: string
  readonly table?: string
}

export async function createCdcStack(
  brokers: string[],
  { partitioned = false, ...names }: StackOptions = {},
): Promise<CdcStack> {
  const server = await startPostgres({ settings: { wal_level: 'logical' } })
  const [sql, client] = [openClient(server.url), openClient(server.url)]
  const db = drizzle(client)
  const outboxes: Outbox<PostgresJsDatabase>[] = []
  const kafka = new Kafka({ brokers, logLevel: logLevel.NOTHING })
  if (names.schema) await sql`create schema ${sql(names.schema)}`
  const unused = createOutbox({ db, relay: 'cdc', ...names })
  await unused.migrate({ partitioned })
  await sql.unsafe(cdcSql(names))
  const { port } = server
  const login = { host: '127.0.0.1', port, database: 'postgres', password: 'unused' }
  const connector = cdcConnector({ ...login, ...names })
  const connect = await createKafkaConnect(brokers, connector)

  function make(options: OutboxOptions<PostgresJsDatabase>) {
    const outbox = createOutbox({ ...names, logger: false, ...options })
    outboxes.push(outbox)
    return outbox
  }

  async function isSlotActive(): Promise<boolean> {
    const rows =
      await sql`select from pg_replication_slots where slot_name = ${connector.name} and active`
    return rows.length === 1
  }

  async function stopOutboxes(): Promise<void> {
    await Promise.all(outboxes.splice(0).map((outbox) => outbox.stop()))
  }

  return {
    server,
    sql,
    connect,
    slot: connector.name,
    cdcOutbox: (options = {}) =>
      make({ db, publisher: kafkaPublisher({ kafka }), relay: 'cdc', ...options }),
    ownOutbox: (options = {}) => make({ db, publisher: kafkaPublisher({ kafka }), ...options }),
    async startConnector() {
      await connect.start()
      await waitUntil(isSlotActive, {
        message: () => `the connector reads its slot:\n${connect.output}`,
      })
    },
    isSlotActive,
    stopOutboxes,
    async stop() {
      await stopOutboxes()
      await connect.remove()
      await Promise.all([sql.end({ timeout: 0 }), client.end({ timeout: 0 })])
      await server.stop()
    },
  }
}

function openClient(url: string): postgres.Sql {
  return postgres(url, { onnotice: () => {} })
}
