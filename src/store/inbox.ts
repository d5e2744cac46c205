// Every SQL statement of the inbox, one function each. The table says what has been handled, so that row and effects
// are one transaction. No session state: it works behind PgBouncer.
import type { Database, Executor } from '../drivers/driver.ts'
import { OutboxOptionsError } from '../errors.ts'
import { run, runWithin } from './database.ts'
import { migrate } from './migrate.ts'
import { sql } from './sql.ts'
import type { Purged } from './store.ts'
import { lockName, qualifiedName, type TableName } from './table-name.ts'

/** For statements of the background, whose connection may be dead. */
const STATEMENT_TIMEOUT_MS = 30_000

/** What became of a delivery: this is the first, there was one before, or a later event was handled before it. */
type Recorded = 'first' | 'duplicate' | 'late'

export interface InboxRules {
  readonly table: TableName
  readonly consumer: string
  readonly retentionMs: number
}

/** Where an event stands in the order of its aggregate. */
export interface Place {
  readonly aggregateType: string
  readonly aggregateId: string
  readonly seq: number
}

export interface InboxStore {
  /**
   * In the transaction of the effects, before them. Waits for a delivery of the same event that is under way; with
   * a place, for that of any event of the aggregate.
   */
  record(tx: Executor, id: string, place: Place | null): Promise<Recorded>
  /** Behind the effects. Throws if they cannot be committed any more. */
  confirm(tx: Executor): Promise<void>
  /** Deletes one batch of old rows of this consumer. One instance at a time: the others get nothing. */
  purge(limit: number, after: string | null): Promise<Purged>
  /** Throws TABLE_MISSING unless the table is there. */
  verify(): Promise<void>
  migrate(): Promise<void>
}

export function inboxStore(db: Database<unknown>, rules: InboxRules): InboxStore {
  const { table, consumer, retentionMs } = rules
  const inbox = qualifiedName(table)

  // The unique index makes a second delivery wait until the first has committed or rolled back, and go by that.
  async function record(tx: Executor, id: string, place: Place | null): Promise<Recorded> {
    if (place) return await recordInOrder(tx, id, place)
    const rows = await run(
      tx,
      'record the event',
      sql`
        insert into ${inbox} (consumer, event_id) values (${consumer}::text, ${id}::text)
        on conflict do nothing returning 1`,
    )
    return rows.length > 0 ? 'first' : 'duplicate'
  }

  // The aggregate is locked before the row is inserted, always: a transaction that handles several events of an
  // aggregate could otherwise wait for one that has inserted the next of them and waits for the lock. An event that
  // is not inserted although no later one was seen has met a delivery that this snapshot does not show.
  async function recordInOrder(
    tx: Executor,
    id: string,
    { aggregateType, aggregateId, seq }: Place,
  ): Promise<Recorded> {
    await lockAggregate(tx, aggregateType, aggregateId)
    const [row] = await run<{ recorded: Recorded }>(
      tx,
      'record the event',
      sql`
        with later as materialized (
          select 1 from ${inbox} i where i.consumer = ${consumer}::text
            and i.aggregate_type = ${aggregateType}::text and i.aggregate_id = ${aggregateId}::text
            and i.seq > ${String(seq)}::text::bigint limit 1
        ), first as (
          insert into ${inbox} (consumer, event_id, aggregate_type, aggregate_id, seq)
          select ${consumer}::text, ${id}::text, ${aggregateType}::text, ${aggregateId}::text,
            ${String(seq)}::text::bigint
          where not exists (select 1 from later)
          on conflict do nothing returning 1
        )
        select case when exists (select 1 from first) then 'first'
          when exists (select 1 from later) and not exists (
            select 1 from ${inbox} i where i.consumer = ${consumer}::text and i.event_id = ${id}::text
          ) then 'late' else 'duplicate' end as recorded`,
    )
    return row!.recorded
  }

  // A statement of its own, so that the next one sees what was committed while this waited. Above read committed it
  // would not: its snapshot is that of the transaction.
  async function lockAggregate(tx: Executor, aggregateType: string, aggregateId: string) {
    const key = `${lockName(table)} ${JSON.stringify([consumer, aggregateType, aggregateId])}`
    const [row] = await run<{ isolation: string }>(
      tx,
      'lock the aggregate',
      sql`select pg_advisory_xact_lock(hashtextextended(${key}::text, 0)),
        current_setting('transaction_isolation') as isolation`,
    )
    if (row!.isolation === 'read committed') return
    throw new OutboxOptionsError(
      `order: 'aggregate' cannot be kept in a transaction that is ${row!.isolation}, as it does not see what was handled while it waited; give it the isolation level read committed`,
    )
  }

  async function purge(limit: number, after: string | null): Promise<Purged> {
    const [purged] = await runWithin<{ deleted: unknown; last: string | null }>(
      STATEMENT_TIMEOUT_MS,
      db,
      'delete old rows',
      sql`
        with turn as materialized (
          select pg_try_advisory_xact_lock(
            hashtextextended(${`${lockName(table)} purge ${consumer}`}::text, 0)) as mine
        ), old as materialized (
          select i.ctid from ${inbox} i
          where (select mine from turn) and i.consumer = ${consumer}::text
            and i.handled_at < now() - ${retentionMs}::float8 * interval '1 ms'
            and i.handled_at >= coalesce(to_timestamp(${after}::text::float8), '-infinity')
          order by i.handled_at limit ${limit}::int for update skip locked
        ), gone as (
          delete from ${inbox} i where i.ctid = any(array(select ctid from old)) returning i.handled_at
        )
        select count(*)::int as deleted, extract(epoch from max(handled_at))::float8::text as last from gone`,
    )
    const { deleted, last } = purged!
    return { deleted: Number(deleted), last }
  }

  async function verify(): Promise<void> {
    await runWithin(
      STATEMENT_TIMEOUT_MS,
      db,
      'look for the inbox table',
      sql`select consumer, event_id, aggregate_type, aggregate_id, seq, handled_at from ${inbox} limit 0`,
    )
  }

  return { record, confirm, purge, verify, migrate: () => migrate(db, 'inbox', table) }
}

// Where a statement has failed and the error was caught, Postgres answers COMMIT with a rollback, and some drivers
// report that as success: the broker would be told that an event was handled whose effects are gone.
async function confirm(tx: Executor): Promise<void> {
  await run(tx, 'confirm the effects', sql`select 1`)
}
