// Counts and latencies, at a cost that does not grow with the table. No figure comes from Postgres's statistics, which
// have no data about a table that was never analyzed: a count is exact, or a lower bound.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import { countUnfinished } from './count-pending.ts'
import type { DueTopics } from './due-topics.ts'
import { isOverdue } from './scheduled.ts'
import { type AnyNumber, hiddenLimit, isDeadIndexed, isScheduledIndexed } from './rows.ts'
import type { StatementContext } from './statement.ts'
import { isOfTopic, topicsSince } from './topics.ts'
import type { Count, Latency, TableStats, TopicBacklog } from './outbox-store.ts'

/** Counted up to here. */
const COUNTED = 100_000

/** This many unfinished events are looked at more closely, and this many rows for those that are published. */
const EXAMINED = 10_000

/** Latency covers this many of the newest events. */
const RECENT = 1_000

export function statsStatement(context: StatementContext, dueTopics: DueTopics) {
  return async (): Promise<TableStats> => {
    await dueTopics(true)
    const [pending, counts, waiting, scheduled, latency] = await Promise.all([
      countUnfinished(context, COUNTED + 1),
      count(context),
      examine(context),
      examineScheduled(context),
      latencies(context),
    ])
    const { due, lagMs } = waiting
    return {
      pending: upTo(COUNTED, pending),
      scheduled: upTo(EXAMINED, scheduled.later),
      ...counts,
      ...waiting,
      due: due + scheduled.overdue,
      lagMs: scheduled.overdueMs === null ? lagMs : Math.max(lagMs ?? 0, scheduled.overdueMs),
      latency,
    }
  }
}

/** Those that are due are made so by the next look of a fallback, if there is one. */
async function examineScheduled(context: StatementContext) {
  const { outbox, horizon } = context
  const o = sql`o`
  const most = hiddenLimit(EXAMINED + 1)
  const [row] = await runInBackground<Record<'later' | 'overdue' | 'overdueMs', AnyNumber | null>>(
    context,
    'look at what is scheduled',
    sql`
      select l.later, d.overdue, d."overdueMs" from (
        select count(*)::int as later from (select from ${outbox} o
          where ${isScheduledIndexed(o)} and o.deliver_at > now() order by o.deliver_at limit ${most}) later
      ) l, (
        select count(*)::int as overdue, date_part('epoch', clock_timestamp() - min(deliver_at)) * 1000 as "overdueMs"
        from (select o.deliver_at from ${outbox} o
          where ${isOverdue(o, horizon)} order by o.deliver_at limit ${most}) overdue
      ) d`,
  )
  const { later, overdue, overdueMs } = row!
  return {
    later: Number(later),
    overdue: Number(overdue),
    overdueMs: overdueMs === null ? null : Number(overdueMs),
  }
}

type Counts = Pick<TableStats, 'dead' | 'published'>

async function count(context: StatementContext): Promise<Counts> {
  const { outbox } = context
  const [row] = await runInBackground<Record<'dead' | 'published' | 'rows', AnyNumber>>(
    context,
    'count events',
    sql`
      select d.dead, n.published, n.rows from (
        select count(*)::int as dead from (
          select from ${outbox} o where ${isDeadIndexed(sql`o`)} order by o.seq limit ${hiddenLimit(COUNTED + 1)}
        ) dead
      ) d, (
        select count(*)::int as rows, count(*) filter (where status = 'published')::int as published
        from (select status from ${outbox} order by id desc limit ${hiddenLimit(EXAMINED + 1)}) newest
      ) n`,
  )
  const { dead, published, rows } = row!
  return {
    dead: upTo(COUNTED, dead),
    published: { count: Number(published), exact: Number(rows) <= EXAMINED },
  }
}

function upTo(most: number, counted: AnyNumber): Count {
  return { count: Math.min(most, Number(counted)), exact: Number(counted) <= most }
}

type Examined = Pick<TableStats, 'due' | 'retrying' | 'held' | 'mostAttempts' | 'lagMs' | 'topics'>

type ExaminedRow = { topic: string } & Record<
  'events' | 'most' | 'due' | 'retrying' | 'held' | 'mostAttempts' | 'lagMs',
  AnyNumber
>

/** Of each topic with unfinished events those that are due first. */
async function examine(context: StatementContext): Promise<Examined> {
  const { outbox, horizon } = context
  const rows = await runInBackground<ExaminedRow>(
    context,
    'look at what waits',
    sql`
      with busy as materialized (
        select t.* from ${topicsSince(horizon.since)}
        where (select true from ${outbox} o where ${isOfTopic(sql`o`)} order by o.available_at limit 1)
      ), share as materialized (
        select ceil(${EXAMINED}::float8 / count(*))::int as most from busy having count(*) > 0
      )
      select topic, count(*)::int as events, (select most from share) as most,
        count(*) filter (where available_at <= now())::int as due,
        count(*) filter (where attempts > 0)::int as retrying,
        count(*) filter (where failed_before)::int as held,
        max(attempts)::int as "mostAttempts",
        date_part('epoch', clock_timestamp() - min(coalesce(deliver_at, created_at))) * 1000 as "lagMs"
      from (
        select *, bool_or(attempts > 0) over (partition by lane order by seq
          rows between unbounded preceding and 1 preceding) as failed_before
        from busy t cross join lateral (
          select o.lane, o.seq, o.attempts, o.available_at, o.created_at, o.deliver_at from ${outbox} o
          where ${isOfTopic(sql`o`)} order by o.available_at, o.seq limit (select most from share)
        ) first
      ) examined group by topic order by topic`,
  )
  const sum = (name: 'due' | 'retrying' | 'held') =>
    rows.reduce((total, row) => total + Number(row[name]), 0)
  const most = (name: 'mostAttempts' | 'lagMs') =>
    rows.reduce((highest, row) => Math.max(highest, Number(row[name])), 0)
  return {
    due: sum('due'),
    retrying: sum('retrying'),
    held: sum('held'),
    mostAttempts: most('mostAttempts'),
    lagMs: rows.length === 0 ? null : Math.round(most('lagMs')),
    topics: Object.fromEntries(rows.map((row) => [row.topic, toBacklog(row)])),
  }
}

function toBacklog({ events, most, lagMs }: ExaminedRow): TopicBacklog {
  const pending = { count: Number(events), exact: Number(events) < Number(most) }
  return { pending, lagMs: Math.round(Number(lagMs)) }
}

async function latencies(context: StatementContext): Promise<TableStats['latency']> {
  const { outbox } = context
  const rows = await runInBackground<Record<keyof Latency, AnyNumber> & { type: string }>(
    context,
    'look up latencies',
    sql`
      select event_type as type, count(*)::int as events, max(ms) as "maxMs",
        percentile_cont(0.5) within group (order by ms) as "medianMs",
        percentile_cont(0.95) within group (order by ms) as "p95Ms"
      from (
        select event_type, date_part('epoch', published_at - coalesce(deliver_at, created_at)) * 1000 as ms
        from (select * from ${outbox} order by id desc limit ${hiddenLimit(RECENT)}) newest
        where status = 'published' and cdc_occurred_at is null
      ) published group by event_type order by event_type`,
  )
  return Object.fromEntries(
    rows.map(({ type, events, medianMs, p95Ms, maxMs }) => [
      type,
      {
        events: Number(events),
        medianMs: toHundredths(medianMs),
        p95Ms: toHundredths(p95Ms),
        maxMs: toHundredths(maxMs),
      },
    ]),
  )
}

/** Postgres's clock counts microseconds; more digits than these are noise. */
function toHundredths(ms: AnyNumber): number {
  return Math.round(Number(ms) * 100) / 100
}
