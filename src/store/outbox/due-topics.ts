// Which topics have due events, and when the next scheduled event is due. One lookup per known topic, starting at the time
// in horizon.ts. New topics are looked for between the known ones, where no entry of a known topic is in the way.
import { performance } from 'node:perf_hooks'
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import { type AnyNumber, isDueIndexed } from './rows.ts'
import type { StatementContext } from './statement.ts'
import { isScheduledSince } from './scheduled.ts'
import { isOfTopic, topicsSince } from './topics.ts'

// A search reads the dead entries of every topic that is not known. So it rests after a search, twenty times as long as that
// took Postgres; but it searches before it returns that nothing is due, unless a search takes long.
const REST_AFTER_SEARCH = 20
const LONGEST_REST_MS = 60_000
const LONG_SEARCH_MS = 100

interface TopicRow {
  topic: string | null
  first: AnyNumber | null
  now: AnyNumber
  serverSince: AnyNumber
  tookMs: AnyNumber
  snapshot: string
  ownId: string | null
  firstScheduled: AnyNumber | null
}

interface Look {
  /** The topics with something due, the one with the oldest event first. */
  readonly topics: string[]
  /** In how many milliseconds the first scheduled event is due, 0 or less if it is; null: there is none. */
  readonly scheduledInMs: number | null
}

/** Looks at the table. With `searches`, the horizon knows every topic afterwards. */
export type DueTopics = (searches?: boolean) => Promise<Look>

export function dueTopicsStatement(context: StatementContext): DueTopics {
  const { outbox, horizon } = context
  const o = sql`o`
  const nextTopic = sql`
    (select o.topic from ${outbox} o where ${isDueIndexed(o)} and o.topic > gap.low and o.topic < gap.high
      order by o.topic limit 1)
    union all
    (select o.topic from ${outbox} o where ${isDueIndexed(o)} and o.topic > gap.low and gap.high is null
      order by o.topic limit 1)`

  let searchAt = 0
  let searchMs = 0
  let learned = 0
  return (searches = false) => look(searches || performance.now() >= searchAt)

  async function look(searches: boolean): Promise<Look> {
    const learnedBefore = learned
    const { at, beyond } = horizon.nextMark
    // A standby gives out no ids. There, the horizon stays where it is.
    const isMark = sql`date_part('epoch', now()) * 1000 >= ${String(at)}::text::float8
      and pg_snapshot_xmax(pg_current_snapshot())::text::numeric > ${String(beyond + 1n)}::text::numeric
      and not pg_is_in_recovery()`
    const rows = await runInBackground<TopicRow>(
      context,
      'look for due events',
      sql`
        with recursive known as materialized (
          select t.* from ${topicsSince(horizon.since)}
        ), gap(low, high, found) as (
          select topic, lead(topic) over (order by topic), false
          from (select topic from known union all select '') ends where ${searches}::boolean
          union all
          select next.topic, gap.high, true from gap cross join lateral (${nextTopic}) next
        ), topics as materialized (
          select topic, since from known union all select low, '-Infinity' from gap where found
        )
        select t.topic, first.ms as first, date_part('epoch', now()) * 1000 as now,
          date_part('epoch', pg_postmaster_start_time()) * 1000 as "serverSince",
          date_part('epoch', clock_timestamp() - statement_timestamp()) * 1000 as "tookMs",
          pg_current_snapshot()::text as snapshot,
          case when ${isMark} then pg_current_xact_id()::text end as "ownId",
          (select date_part('epoch', o.deliver_at) * 1000 from ${outbox} o where ${isScheduledSince(o, horizon)}
            order by o.deliver_at limit 1) as "firstScheduled"
        from (select count(*) from topics) searched left join topics t on true left join lateral (
          select date_part('epoch', o.available_at) * 1000 as ms from ${outbox} o
          where ${isOfTopic(o)} order by o.available_at limit 1
        ) first on true`,
    )
    const [{ now, snapshot, ownId, tookMs, ...row }] = rows as [TopicRow]
    const firstScheduled = row.firstScheduled === null ? null : Number(row.firstScheduled)
    if (searches) {
      searchMs = Number(tookMs)
      searchAt = performance.now() + Math.min(searchMs * REST_AFTER_SEARCH, LONGEST_REST_MS)
    }
    const firsts = rows.flatMap(({ topic, first }) =>
      topic === null ? [] : [[topic, first === null ? null : Number(first)] as const],
    )
    horizon.looked(firsts.map(([topic]) => topic))
    // One at a time: a look that began before the last one had ended may have seen less than that.
    if (learned === learnedBefore) {
      learned += 1
      const found = {
        now: Number(now),
        serverSince: Number(row.serverSince),
        running: readRunning(snapshot),
        ownId: ownId === null ? null : BigInt(ownId),
        firstByTopic: new Map(firsts),
        firstScheduled,
      }
      if (horizon.learn(found)) return await look(searches)
    }
    const topics = firsts
      .filter((entry): entry is [string, number] => entry[1] !== null && entry[1] <= Number(now))
      .toSorted(([, one], [, other]) => one - other)
      .map(([topic]) => topic)
    const scheduledInMs = firstScheduled === null ? null : firstScheduled - Number(now)
    if (topics.length > 0 || searches || searchMs > LONG_SEARCH_MS) return { topics, scheduledInMs }
    return await look(true)
  }
}

/** The lowest id that is running, the id after the newest one that has ended, and all running ids between: `10:20:10,14`. */
function readRunning(snapshot: string): ReadonlySet<bigint> {
  const [, , running = ''] = snapshot.split(':')
  return new Set(running.split(',').filter(Boolean).map(BigInt))
}
