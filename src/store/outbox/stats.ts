// Counts and latencies: two statements whose cost does not grow with the table.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import type { AnyNumber } from './rows.ts'
import type { StatementContext } from './statement.ts'
import type { Count, Latency, TableStats } from './outbox-store.ts'
import { quoteName } from '../table-name.ts'

/** Counted exactly up to here. */
const COUNTED = 10_000

/** Latency covers this many of the newest events. */
const RECENT = 1_000

export function statsStatement(context: StatementContext) {
  return () => readStats(context)
}

async function readStats(context: StatementContext): Promise<TableStats> {
  const { outbox, rules } = context
  const { table } = rules
  const estimate = (name: string) => sql`(select c.reltuples::float8 from pg_class c
    where c.oid = to_regclass(${`${quoteName(table.schema)}.${quoteName(name)}`}::text))`
  const [[row], latency] = await Promise.all([
    runInBackground<Record<keyof Counts, AnyNumber | null>>(
      context,
      'count events',
      sql`
        select w.*, d.*, a.*, ${estimate(table.name)} as "rowsEstimate",
          ${estimate(`${table.name}_available_idx`)} as "pendingEstimate",
          ${estimate(`${table.name}_dead_idx`)} as "deadEstimate"
        from (
          select count(*)::int as pending, count(*) filter (where available_at <= now())::int as due,
            count(*) filter (where attempts > 0)::int as retrying,
            count(*) filter (where failed_before)::int as held,
            coalesce(max(attempts), 0)::int as "mostAttempts",
            (extract(epoch from clock_timestamp() - min(created_at)) * 1000)::float8 as "lagMs"
          from (
            select *, bool_or(attempts > 0) over (partition by lane order by seq
              rows between unbounded preceding and 1 preceding) as failed_before
            from (select lane, seq, attempts, available_at, created_at from ${outbox}
              where status = 'pending' order by available_at, seq limit ${COUNTED + 1}) due
          ) p
        ) w, (
          select count(*)::int as dead
          from (select 1 from ${outbox} where status = 'dead_letter' limit ${COUNTED + 1}) p
        ) d, (
          select count(*)::int as rows from (select 1 from ${outbox} limit ${COUNTED + 1}) p
        ) a`,
    ),
    runInBackground<Record<keyof Latency, AnyNumber> & { type: string }>(
      context,
      'look up latencies',
      sql`
        select event_type as type, count(*)::int as events, max(ms) as "maxMs",
          percentile_cont(0.5) within group (order by ms) as "medianMs",
          percentile_cont(0.95) within group (order by ms) as "p95Ms"
        from (
          select event_type, (extract(epoch from published_at - created_at) * 1000)::float8 as ms
          from (select * from ${outbox} order by id desc limit ${RECENT}) newest
          where status = 'published'
        ) published group by event_type order by event_type`,
    ),
  ])
  const counts = readNumbers(row!) as unknown as Counts
  const { due, retrying, held, mostAttempts, lagMs } = counts
  const pending = boundedCount(counts.pending, counts.pendingEstimate)
  const dead = boundedCount(counts.dead, counts.deadEstimate)
  const all = boundedCount(counts.rows, counts.rowsEstimate)
  const others = Math.max(0, all.count - pending.count - dead.count)
  const published: Count = { count: others, exact: all.exact }
  return {
    pending,
    dead,
    published,
    due,
    retrying,
    held,
    mostAttempts,
    lagMs,
    latency: Object.fromEntries(
      latency.map(({ type, ...ms }) => [type, readNumbers(ms) as unknown as Latency]),
    ),
  }
}

interface Counts {
  pending: number
  due: number
  retrying: number
  held: number
  mostAttempts: number
  lagMs: number | null
  dead: number
  rows: number
  rowsEstimate: number | null
  pendingEstimate: number | null
  deadEstimate: number | null
}

function readNumbers(row: Readonly<Record<string, AnyNumber | null>>) {
  const numbers = Object.entries(row).map(([name, value]) => {
    return [name, value === null ? null : Number(value)] as const
  })
  return Object.fromEntries(numbers)
}

function boundedCount(counted: number, estimate: number | null): Count {
  if (counted <= COUNTED) return { count: counted, exact: true }
  return { count: Math.max(counted, Math.round(estimate ?? 0)), exact: false }
}
