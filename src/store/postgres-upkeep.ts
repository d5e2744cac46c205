// The statements beside the path: what is old, what is dead, how much there is. Each is bounded, so that
// none of them is in the way of the path, however large the table.
import type { Executor } from '../drivers/driver.ts'
import { run, runWithin } from './database.ts'
import { readStats } from './postgres-stats.ts'
import {
  type AnyNumber,
  EVENT_COLUMNS,
  type EventRow,
  encodeArray,
  toDate,
  toEvent,
} from './rows.ts'
import { sql, type SQL } from './sql.ts'
import type { DeadLetterFilter, DeadLetterPage, PurgeRequest, Store, StoreRules } from './store.ts'
import { lockName, qualifiedName } from './table-name.ts'

type Upkeep = Pick<
  Store<never>,
  | 'purge'
  | 'listDeadLetters'
  | 'retryDeadLetters'
  | 'discardDeadLetters'
  | 'countDeadLetters'
  | 'countUnrouted'
  | 'countPending'
  | 'stats'
>

export function upkeepStatements(db: Executor, rules: StoreRules): Upkeep {
  const { table, statementTimeoutMs } = rules
  const outbox = qualifiedName(table)
  const runHere = <Row>(step: string, query: SQL) =>
    runWithin<Row>(statementTimeoutMs, db, step, query)
  // Ids begin with the time at which they were made, so the primary key leads to old rows without an index
  // of their own; what decides is the time in the row, by the database's clock. An application whose clock
  // is ahead has its rows deleted later, never sooner.
  async function purge({ status, olderThanMs, limit, after }: PurgeRequest) {
    const age = sql`${olderThanMs}::float8 * interval '1 ms'`
    const bornBefore = sql`(lpad(to_hex((extract(epoch from now() - ${age}) * 1000)::bigint), 12, '0')
      || repeat('0', 20))::uuid`
    const diedAt = status === 'published' ? sql`o.published_at` : sql`o.last_attempt_at`
    const [purged] = await runHere<{ deleted: AnyNumber; last: string | null }>(
      'delete old rows',
      sql`
        with turn as materialized (
          select pg_try_advisory_xact_lock(hashtextextended(${`${lockName(table)} purge`}::text, 0)) as mine
        ), old as materialized (
          select o.id from ${outbox} o
          where (select mine from turn) and o.status = ${sql.raw(`'${status}'`)}
            and ${diedAt} < now() - ${age} and o.id < ${bornBefore}
            and o.id > coalesce(${after}::text::uuid, '00000000-0000-0000-0000-000000000000')
          order by o.id limit ${limit}::int for update skip locked
        ), gone as (
          delete from ${outbox} o using old where o.id = old.id returning o.id
        )
        select count(*)::int as deleted, (select g.id::text from gone g order by g.id desc limit 1) as last
        from gone`,
    )
    return { deleted: Number(purged!.deleted), last: purged!.last }
  }

  async function listDeadLetters(filter: DeadLetterFilter, { limit, afterSeq }: DeadLetterPage) {
    const rows = await run<EventRow & { error: string | null; diedAt: AnyNumber }>(
      db,
      'list dead letters',
      sql`
        select ${EVENT_COLUMNS}, o.last_error as error,
          (extract(epoch from o.last_attempt_at) * 1000)::float8 as "diedAt"
        from ${outbox} o where ${matching(filter)} and o.seq > ${afterSeq}::float8::bigint
        order by o.seq limit ${limit}::int`,
    )
    return rows.map(({ error, diedAt, ...row }) => {
      return { ...toEvent(row), error: error ?? '', diedAt: toDate(diedAt) }
    })
  }

  async function retryDeadLetters(filter: DeadLetterFilter, page: DeadLetterPage) {
    return await changeDeadLetters(
      'retry dead letters',
      filter,
      page,
      sql`update ${outbox} o set status = 'pending', attempts = 0, available_at = clock_timestamp(),
        lease_token = null, updated_at = clock_timestamp() from chosen where o.id = chosen.id`,
    )
  }

  async function discardDeadLetters(filter: DeadLetterFilter, page: DeadLetterPage) {
    const remove = sql`delete from ${outbox} o using chosen where o.id = chosen.id`
    return await changeDeadLetters('discard dead letters', filter, page, remove)
  }

  async function changeDeadLetters(
    step: string,
    filter: DeadLetterFilter,
    { limit, afterSeq }: DeadLetterPage,
    change: SQL,
  ) {
    const [changed] = await run<{ count: AnyNumber; lastSeq: string | null }>(
      db,
      step,
      sql`
        with chosen as materialized (
          select o.id, o.seq from ${outbox} o
          where ${matching(filter)} and o.seq > ${afterSeq}::float8::bigint
          order by o.seq limit ${limit}::int for update
        ), changed as (${change} returning o.seq)
        select count(*)::int as count, max(seq)::text as "lastSeq" from changed`,
    )
    const { count, lastSeq } = changed!
    return { count: Number(count), lastSeq: lastSeq === null ? null : Number(lastSeq) }
  }

  async function countDeadLetters(limit: number) {
    const rows = await runHere<{ type: string; count: AnyNumber }>(
      'count dead letters',
      sql`
        select event_type as type, count(*)::int as count
        from (select event_type from ${outbox} where status = 'dead_letter' limit ${limit}::int) dead
        group by event_type order by event_type`,
    )
    return Object.fromEntries(rows.map(({ type, count }) => [type, Number(count)]))
  }

  // What nobody claims keeps its place, while all others move back with each lease: it comes to the front.
  async function countUnrouted(routed: readonly string[], limit: number) {
    const rows = await runHere<{ topic: string; count: AnyNumber }>(
      'count events without a route',
      sql`
        select topic, count(*)::int as count
        from (select topic from ${outbox} where status = 'pending' and available_at <= now()
          order by available_at, seq limit ${limit}::int) due
        where topic <> all (${encodeArray(routed)}::text::text[])
        group by topic order by topic`,
    )
    return Object.fromEntries(rows.map(({ topic, count }) => [topic, Number(count)]))
  }

  async function countPending(limit: number) {
    const [counted] = await runHere<{ count: AnyNumber }>(
      'count what waits',
      sql`select count(*)::int as count
        from (select 1 from ${outbox} where status = 'pending' limit ${limit}::int) waiting`,
    )
    return Number(counted!.count)
  }

  return {
    purge,
    listDeadLetters,
    retryDeadLetters,
    discardDeadLetters,
    countDeadLetters,
    countUnrouted,
    countPending,
    stats: () => readStats(db, rules),
  }
}

function matching(filter: DeadLetterFilter): SQL {
  const { id, type, aggregateType, aggregateId, diedSince, diedBefore } = filter
  const conditions = [sql`o.status = 'dead_letter'`]
  if (id !== undefined) {
    const ids = encodeArray(typeof id === 'string' ? [id] : id)
    conditions.push(sql`o.id = any (${ids}::text::uuid[])`)
  }
  if (type !== undefined) conditions.push(sql`o.event_type = ${type}::text`)
  if (aggregateType !== undefined) conditions.push(sql`o.aggregate_type = ${aggregateType}::text`)
  if (aggregateId !== undefined) conditions.push(sql`o.aggregate_id = ${aggregateId}::text`)
  if (diedSince)
    conditions.push(sql`o.last_attempt_at >= ${diedSince.toISOString()}::text::timestamptz`)
  if (diedBefore)
    conditions.push(sql`o.last_attempt_at < ${diedBefore.toISOString()}::text::timestamptz`)
  return sql.join(conditions, sql` and `)
}
