// The save: the last statement before COMMIT. For each event it returns the earlier, unfinished events of its lane, which
// the event has to follow (see delivery/order.ts). A database function finds them, because Postgres caches its
// plan; planning that query with each INSERT took longer than everything else.
import { randomUUID } from 'node:crypto'
import type { Executor } from '../../drivers/driver.ts'
import { sql, type SQL } from '../../drivers/sql.ts'
import type { OutboxEvent, PreparedEvent } from '../../event/event.ts'
import { noTransaction } from '../../errors.ts'
import { run } from '../database.ts'
import { lockName, qualifiedName, type TableName } from '../table-name.ts'
import type { Lease, SavedEvent, SavedIn } from './outbox-store.ts'
import { type AnyNumber, TIMES, type TimesRow, toTimes } from './rows.ts'
import type { StatementContext } from './statement.ts'

const PREPARE = { prepare: true }

export interface SavedRow extends TimesRow {
  id: string
  seq: string
  follows: string | null
  dueInMs?: AnyNumber | null
}

export function saveStatement(context: StatementContext) {
  const { rules } = context
  const { lockLanes, insert } = parts(context)
  return async (
    tx: Executor,
    events: readonly PreparedEvent[],
    lease: Lease,
  ): Promise<SavedEvent[]> => {
    if (rules.lockKeys) await lockLanes(tx, events)
    const rows = await run<SavedRow>(tx, 'save events', insert(events, lease), PREPARE)
    if (rows.length === 1) return [toSaved(events[0]!, rows[0]!)]
    const byId = new Map(rows.map((row) => [row.id, row]))
    return events.map((event) => toSaved(event, byId.get(event.id)!))
  }
}

// For a transaction that the application began, which may stay open: without a lease. The application may also have ended
// it, or never begun one, and an INSERT outside of it would commit at once. So the first statement leaves a mark that lasts
// as long as its transaction, and the INSERT inserts only where it finds the mark.
export function saveInStatement(context: StatementContext) {
  const { rules } = context
  const { lockLanes, insert } = parts(context)
  return async (
    tx: Executor,
    events: readonly PreparedEvent[],
    workerId: string,
  ): Promise<SavedIn> => {
    const mark = randomUUID()
    const setMark = sql`select set_config(${MARK}::text, ${mark}::text, true)`
    const where = sql`where current_setting(${MARK}::text, true) = ${mark}::text`
    const unleased = insert(events, { token: '', workerId, ms: 0 }, where)
    const query = sql`${unleased}, pg_current_xact_id()::text as transaction`
    // All at once, so that a COMMIT that does not wait for them comes behind them where the client sends in this order.
    const [, , rows] = await Promise.all([
      run(tx, 'mark the transaction', setMark),
      rules.lockKeys ? lockLanes(tx, events) : null,
      run<SavedRow & { transaction: string }>(tx, 'save events', query, PREPARE),
    ])
    const [row] = rows
    if (!row) throw noTransaction()
    const dues = rows.flatMap(({ dueInMs = null }) => (dueInMs === null ? [] : [Number(dueInMs)]))
    const dueInMs = dues.length > 0 ? dues.reduce((one, other) => Math.min(one, other)) : null
    return { transaction: row.transaction, dueInMs }
  }
}

/** A setting of our own, local to a transaction. */
export const MARK = 'aftercommit.emit_in'

function parts({ outbox, rules }: StatementContext) {
  const follows = followsFunction(rules.table)

  // The locks are taken in the order of their hashes, so two units of work cannot deadlock here, and only the INSERT
  // and COMMIT follow. This is a separate statement, so that the INSERT sees what was committed while it waited.
  async function lockLanes(tx: Executor, events: readonly PreparedEvent[]) {
    const lanes = JSON.stringify(events.map(({ lane }) => lane))
    await run(
      tx,
      'lock lanes',
      sql`
        select pg_advisory_xact_lock(k.hash)::text from (
          select distinct hashtextextended(${lockName(rules.table)}::text || lane, 0) as hash
          from json_array_elements_text(${lanes}::text::json) as lane order by 1
        ) k`,
    )
  }

  // clock_timestamp(), never now(): now() is when the transaction began, and by the time of the save a unit of work may
  // be older than its events' lease (rule 2). The ORDER BY makes `seq` follow the order of emit(). Events without a
  // lease belong to the fallback, which keeps the order by itself.
  function insert(events: readonly PreparedEvent[], lease: Lease, where = sql``): SQL {
    if (rules.savesForCdc) return insertForCdc(events, lease.workerId, where)
    if (events.some(({ schedule }) => schedule)) return insertScheduled(events, lease, where)
    const isLeased = lease.ms > 0
    return sql`
      insert into ${outbox} as o (id, lane, aggregate_type, aggregate_id, event_type, topic, payload,
        headers, max_attempts, available_at, lease_token, worker_id, occurred_at)
      select e.id, e.lane, e.aggregate_type, e.aggregate_id, e.event_type, e.topic, e.payload,
        e.headers, e.max_attempts, clock_timestamp() + ${lease.ms}::float8 * interval '1 ms',
        ${isLeased ? lease.token : null}::text::uuid, ${lease.workerId}::text,
        coalesce(to_timestamp(e.occurred_ms / 1000), clock_timestamp())
      from ${rowsOf(events)} e ${where} order by e.n
      returning o.id::text, o.seq::text, ${TIMES}, case when ${isLeased}::boolean
        then ${follows.name}(o.lane, o.seq, ${rules.deadLettersHold}::boolean)::text end as follows`
  }

  // The same for a unit that has scheduled events, so that the others pay nothing for them. A scheduled event has no lease: it is
  // the fallback's when it is due. Its worker stays empty until a claim takes it, by which cancel.ts knows whether one has. It is
  // due no earlier than now, whatever time it was given: see horizon.ts.
  function insertScheduled(events: readonly PreparedEvent[], lease: Lease, where: SQL): SQL {
    const isLeased = lease.ms > 0
    const isNow = sql`e.deliver_at is null`
    return sql`
      insert into ${outbox} as o (id, lane, aggregate_type, aggregate_id, event_type, topic, payload,
        headers, max_attempts, status, deliver_at, available_at, lease_token, worker_id, occurred_at)
      select e.id, e.lane, e.aggregate_type, e.aggregate_id, e.event_type, e.topic, e.payload,
        e.headers, e.max_attempts, case when ${isNow} then 'pending' else 'scheduled' end, e.deliver_at,
        coalesce(e.deliver_at, clock_timestamp() + ${lease.ms}::float8 * interval '1 ms'),
        case when ${isNow} then ${isLeased ? lease.token : null}::text::uuid end,
        case when ${isNow} then ${lease.workerId}::text end,
        coalesce(to_timestamp(e.occurred_ms / 1000), clock_timestamp())
      from (
        select r.*, case when coalesce(deliver_at_ms, deliver_after_ms) is not null then greatest(clock_timestamp(),
          to_timestamp(deliver_at_ms / 1000), clock_timestamp() + deliver_after_ms * interval '1 ms') end as deliver_at
        from ${manyRows(events, SCHEDULE)} r
      ) e ${where} order by e.n
      returning o.id::text, o.seq::text, ${TIMES}, case when ${isLeased}::boolean
        then ${follows.name}(o.lane, o.seq, ${rules.deadLettersHold}::boolean)::text end as follows,
        date_part('epoch', o.deliver_at - clock_timestamp()) * 1000 as "dueInMs"`
  }

  // For a connector that reads the INSERT from the log. The row is born published, so no claim, count or index is concerned
  // with it, and retention deletes it. The connector cannot format a time, so its text is a column.
  function insertForCdc(events: readonly PreparedEvent[], workerId: string, where: SQL): SQL {
    return sql`
      insert into ${outbox} as o (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers,
        max_attempts, status, available_at, published_at, worker_id, occurred_at, cdc_occurred_at)
      select e.id, e.lane, e.aggregate_type, e.aggregate_id, e.event_type, e.topic, e.payload, e.headers,
        e.max_attempts, 'published', clock_timestamp(), clock_timestamp(), ${workerId}::text, t.occurred_at,
        to_char(t.occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
      from ${rowsOf(events)} e cross join lateral (
        select coalesce(to_timestamp(e.occurred_ms / 1000), clock_timestamp()) as occurred_at
      ) t ${where} order by e.n
      returning o.id::text, o.seq::text, ${TIMES}, null as follows`
  }

  return { lockLanes, insert }
}

/** The database function behind `follows`, from drizzle/0001_follows.sql. */
export function followsFunction(table: TableName) {
  const name = qualifiedName({ ...table, name: `${table.name}_follows` })
  return { name, signature: `${name.text}(bigint, bigint, boolean)` }
}

// The emitted object itself is sent, with the fields that only the database knows added to it.
export function toSaved(event: PreparedEvent, row: SavedRow): SavedEvent {
  const saved: OutboxEvent = Object.assign(event, {
    seq: Number(row.seq),
    ...toTimes(row),
    attempts: 0,
  })
  const { follows, dueInMs = null } = row
  return {
    event: saved,
    follows: readSeqs(follows),
    ...(dueInMs !== null && { dueInMs: Number(dueInMs) }),
  }
}

function readSeqs(text: string | null): readonly number[] | 'unknown' {
  if (text === null) return 'unknown'
  return text === '{}' ? [] : text.slice(1, -1).split(',').map(Number)
}

// Most units of work emit one event. Postgres reads parameters for it in half the time that JSON takes. A JSON null
// payload comes out of the recordset as SQL NULL, hence the coalesce.
function rowsOf(events: readonly PreparedEvent[]): SQL {
  const [one] = events
  if (!one || events.length > 1) return manyRows(events)
  return sql`(select 0 as n, ${one.id}::text::uuid as id, ${one.lane}::float8::bigint as lane,
      ${one.aggregateType}::text as aggregate_type,
      ${one.aggregateId}::text as aggregate_id, ${one.type}::text as event_type,
      ${one.topic}::text as topic, ${one.payload}::text::json as payload,
      ${JSON.stringify(one.headers)}::text::json as headers, ${one.maxAttempts}::int as max_attempts,
      ${one.occurredAt?.getTime() ?? null}::float8 as occurred_ms)`
}

/** `further`: columns that only some units need. */
function manyRows(events: readonly PreparedEvent[], further = { names: sql``, types: sql`` }): SQL {
  return sql`(select n, id, lane, aggregate_type, aggregate_id, event_type, topic,
      coalesce(payload, 'null') as payload, headers, max_attempts, occurred_ms ${further.names}
    from json_to_recordset(${encodeRows(events)}::text::json) as r(n int, id uuid, lane bigint,
      aggregate_type text, aggregate_id text, event_type text, topic text, payload json,
      headers json, max_attempts int, occurred_ms float8 ${further.types}))`
}

const SCHEDULE = {
  names: sql`, deliver_at_ms, deliver_after_ms`,
  types: sql`, deliver_at_ms float8, deliver_after_ms float8`,
}

// The payload already is JSON, so it is inserted as it is, without being quoted and parsed again.
function encodeRows(events: readonly PreparedEvent[]): string {
  const rows = events.map((event, n) => {
    const columns = JSON.stringify({
      n,
      id: event.id,
      lane: event.lane,
      aggregate_type: event.aggregateType,
      aggregate_id: event.aggregateId,
      event_type: event.type,
      topic: event.topic,
      headers: event.headers,
      max_attempts: event.maxAttempts,
      occurred_ms: event.occurredAt?.getTime() ?? null,
      ...toColumns(event.schedule),
    })
    return `${columns.slice(0, -1)},"payload":${event.payload}}`
  })
  return `[${rows.join(',')}]`
}

function toColumns(schedule: PreparedEvent['schedule']) {
  if (!schedule) return {}
  return 'at' in schedule
    ? { deliver_at_ms: schedule.at.getTime() }
    : { deliver_after_ms: schedule.afterMs }
}
