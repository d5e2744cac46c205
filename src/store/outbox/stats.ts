// Counts and latencies, at a cost that does not grow with the table. No figure comes from Postgres's statistics, which
// know nothing of a table that was never analyzed: a count is exact, or a lower bound.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import { countUnfinished } from './count-pending.ts'
import type { DueTopics } from './due-topics.ts'
import { type AnyNumber, hiddenLimit, isDeadIndexed } from './rows.ts'
import type { StatementContext } from './statement.ts'
import { isOfTopic, topicsSince } from './topics.ts'
import type { Count, Latency, TableStats } from './outbox-store.ts'

/** Counted up to here. */
const COUNTED = 100_000

/** This many unfinished events are looked at more closely, and this many rows for those that are published. */
const EXAMINED = 10_000

/** Latency covers this many of the newest events. */
const RECENT = 1_000

export function statsStatement(context: StatementContext, dueTopics: DueTopics) {
  return async (): Promise<TableStats> => {
    await dueTopics(true)
    const [pending, counts, waiting, latency] = await Promise.all([
      countUnfinished(context, COUNTED + 1),
      count(context),
      examine(context),
      latencies(context),
    ])
    return { pending: upTo(COUNTED, pending), ...counts, ...waiting, latency }
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

type Examined = Pick<TableStats, 'due' | 'retrying' | 'held' | 'mostAttempts' | 'lagMs'>

/** Of each topic with unfinished events those that are due first. */
async function examine(context: StatementContext): Promise<Examined> {
  const { outbox, horizon } = context
  const [row] = await runInBackground<Record<keyof Examined, AnyNumber | null>>(
    context,
    'look at what waits',
    sql`
      with busy as materialized (
        select t.* from ${topicsSince(horizon.since)}
        where (select true from ${outbox} o where ${isOfTopic(sql`o`)} order by o.available_at limit 1)
      )
      select count(*) filter (where available_at <= now())::int as due,
        count(*) filter (where attempts > 0)::int as retrying,
        count(*) filter (where failed_before)::int as held,
        coalesce(max(attempts), 0)::int as "mostAttempts",
        date_part('epoch', clock_timestamp() - min(created_at)) * 1000 as "lagMs"
      from (
        select *, bool_or(attempts > 0) over (partition by lane order by seq
          rows between unbounded preceding and 1 preceding) as failed_before
        from busy t cross join lateral (
          select o.lane, o.seq, o.attempts, o.available_at, o.created_at from ${outbox} o
          where ${isOfTopic(sql`o`)} order by o.available_at, o.seq limit (select ceil(${EXAMINED}::float8 / count(*))::int from busy)
        ) first
      ) examined`,
  )
  const { due, retrying, held, mostAttempts, lagMs } = row!
  return {
    due: Number(due),
    retrying: Number(retrying),
    held: Number(held),
    mostAttempts: Number(mostAttempts),
    lagMs: lagMs === null ? null : Number(lagMs),
  }
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
        select event_type, date_part('epoch', published_at - created_at) * 1000 as ms
        from (select * from ${outbox} order by id desc limit ${hiddenLimit(RECENT)}) newest
        where status = 'published'
      ) published group by event_type order by event_type`,
  )
  return Object.fromEntries(
    rows.map(({ type, events, medianMs, p95Ms, maxMs }) => [
      type,
      {
        events: Number(events),
        medianMs: Number(medianMs),
        p95Ms: Number(p95Ms),
        maxMs: Number(maxMs),
      },
    ]),
  )
}
