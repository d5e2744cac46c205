// The claim: takes over rows that no process holds, without waiting for other statements (rule 7). It reads as many rows
// as it may take and no more, and writes each of them, so that no claim after it looks at them again:
//
// 1. found: rows that are due, oldest first, by topic; or the rows at the heads of given lanes. Rows that another claim is
//    taking are skipped.
// 2. runs: a row goes if the unfinished row ahead of it in its lane, if there is one, is found too and goes. So each lane
//    gives a run from its head, without a gap, which is what delivery/order.ts relies on.
// 3. What does not go is put off until the lease or the rest of its lane's head is over, and a threshold longer. It does
//    not have to wait that long: the claim that takes the row ahead of it returns its lane as a waiting one, and so does
//    this one if the head is under way. The fallback then looks at that lane.
//
// A probe takes one event but may read more, as the first ones may have to wait for others. What it leaves stays as it is.
import { sql, type SQL } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import type { OutboxEvent } from '../../event/event.ts'
import type { Claimed, ClaimRequest, ClaimSource, TopicLimits } from './outbox-store.ts'
import {
  type AnyNumber,
  DEAD_LETTER_COPY,
  EVENT_COLUMNS,
  type EventRow,
  encodeArray,
  hiddenLimit,
  isDeadLaneIndexed,
  isLaneIndexed,
  toEvent,
} from './rows.ts'
import type { StatementContext } from './statement.ts'
import { isOfTopic, topicsSince } from './topics.ts'

/** For what waits behind a head for a topic that this claim does not take. The claim that takes the head wakes it. */
const LONG = sql`interval '5 minutes'`

/**
 * For what waits behind a dead letter: longer, the older it is, as it may wait for days. Retrying or discarding the dead
 * letter wakes it.
 */
const HELD = sql`greatest(${LONG}, least(now() - o.created_at, interval '1 hour'))`

// now() is the start of this short transaction. Unlike clock_timestamp(), it can be looked up in the index.
const isDue = (row: SQL) => sql`${row}.available_at <= now()`

/** Put off by a claim: neither leased nor resting after a failure. */
const isPutOff = (row: SQL) =>
  sql`(${row}.available_at > now() and ${row}.lease_token is null and ${row}.status = 'pending')`

interface ClaimRow extends EventRow {
  dueAt: AnyNumber
  goes: AnyNumber
  waits: AnyNumber
}

export function claimStatement(context: StatementContext) {
  const { outbox, rules, horizon } = context
  const [o, p] = [sql`o`, sql`p`]

  /** One value of the nearest unfinished row of a lane: its head, or the next one before or after a row. */
  const nearest = (
    value: SQL,
    where: SQL,
    direction = sql``,
  ) => sql`(select ${value} from ${outbox} p
    where ${where} and ${isLaneIndexed(p)} order by p.seq ${direction} limit 1)`
  const ahead = nearest(sql`p.seq`, sql`p.lane = f.lane and p.seq < f.seq`, sql`desc`)
  const isHeld = (row: SQL) =>
    rules.deadLettersHold
      ? sql`exists (select from ${outbox} d where d.lane = ${row}.lane and d.seq < ${row}.seq
          and ${isDeadLaneIndexed(sql`d`)} and d.aggregate_type <> ${DEAD_LETTER_COPY}::text)`
      : sql`false`

  function found(from: ClaimSource, limit: SQL): SQL {
    if ('lanes' in from) {
      const headMayGo = nearest(
        sql`(${isDue(p)} or ${isPutOff(p)}) and ${isWanted(p, from)} and not ${isHeld(p)}`,
        sql`p.lane = l.lane`,
      )
      return sql`
        select f.* from unnest(${encodeArray(from.lanes.map(String))}::text::bigint[]) as l(lane)
        cross join lateral (
          select o.id, o.seq, o.lane, o.available_at from ${outbox} o
          where o.lane = l.lane and ${isLaneIndexed(o)} and (${isDue(o)} or ${isPutOff(o)})
            and ${isWanted(o, from)} and ${headMayGo}
          order by o.seq limit ${limit} for update skip locked
        ) f limit ${limit}`
    }
    const topics = from.topics.map((topic) => [topic, horizon.claimsFrom(topic)] as const)
    return sql`
      select f.* from ${topicsSince(topics)} cross join lateral (
        select o.id, o.seq, o.lane, o.available_at from ${outbox} o
        where ${isOfTopic(o)} and ${isDue(o)}
        order by o.available_at, o.seq limit ${limit} for update skip locked
      ) f limit ${limit}`
  }

  return async ({ lease, limit, from, read = limit }: ClaimRequest): Promise<Claimed> => {
    const { looks } = horizon
    const leaseLength = sql`${lease.ms}::float8 * interval '1 ms'`
    const isOtherTopic =
      'topics' in from
        ? sql`p.topic <> all (${encodeArray(from.topics)}::text::text[])`
        : sql`false`
    // Put off already, or about to be: a claim of its topic that runs beside this one sees a head that it does not take.
    const nextWaits = nearest(
      sql`${isPutOff(p)} or (${isDue(p)} and ${isOtherTopic})`,
      sql`p.lane = r.lane and p.seq > r.seq`,
    )
    // In the order of saving, so that what is left of a lane comes after what is taken.
    const chosen =
      read > limit
        ? sql`and (not r.goes or r.id in (select id from runs where goes order by seq limit ${limit}::int))`
        : sql``
    const rows = await runInBackground<ClaimRow>(
      context,
      'claim events',
      sql`
        with found as materialized (${found(from, hiddenLimit(read))}
        ), runs as materialized (
          select r.*, coalesce(case when goes and is_last then ${nextWaits} end, false) as waits from (
            select f.id, f.seq, f.lane, f.available_at, f.is_held, f.is_last,
              bool_and(f.ahead is not distinct from f.previous and not f.is_held)
                over (partition by f.lane order by f.seq) as goes
            from (
              select f.*, ${ahead} as ahead, ${isHeld(sql`f`)} as is_held,
                lag(f.seq) over lane as previous, lead(f.seq) over lane is null as is_last
              from found f window lane as (partition by f.lane order by f.seq)
            ) f
          ) r
        ), heads as materialized (
          select l.lane, h.* from (select distinct lane from runs where not goes) l
          cross join lateral (
            select p.available_at, ${isDue(p)} and ${isOtherTopic} as is_elsewhere,
              p.status = 'failed' and p.lease_token is null and not ${isDue(p)} as rests
            from ${outbox} p where p.lane = l.lane and ${isLaneIndexed(p)} order by p.seq limit 1
          ) h
        )
        update ${outbox} o set updated_at = clock_timestamp(),
          lease_token = case when r.goes then ${lease.token}::text::uuid end,
          worker_id = case when r.goes then ${lease.workerId}::text else o.worker_id end,
          available_at = case when r.goes then clock_timestamp() + ${leaseLength}
            when r.is_held then now() + ${HELD}
            when head.is_elsewhere then now() + ${LONG}
            else greatest(head.available_at, now()) + ${leaseLength} end
        from runs r left join heads head on head.lane = r.lane and not r.goes
        where o.id = r.id ${'lanes' in from ? sql`and r.goes` : sql``} ${chosen}
        returning ${EVENT_COLUMNS}, date_part('epoch', r.available_at) * 1000 as "dueAt", r.goes::int,
          (case when r.goes then r.waits
            else not (r.is_held or coalesce(head.is_elsewhere or head.rests, false)) end)::int as waits`,
    )
    const events: OutboxEvent[] = []
    const waitingLanes = new Set<number>()
    const upTo = new Map<string, number>()
    for (const row of rows) {
      if (Number(row.goes)) events.push(toEvent(row))
      if (Number(row.waits)) waitingLanes.add(Number(row.lane))
      upTo.set(row.topic, Math.max(Number(row.dueAt), upTo.get(row.topic) ?? 0))
    }
    const isAll = 'topics' in from && read === limit
    if (isAll) for (const [topic, dueAt] of upTo) horizon.claimedUpTo(topic, dueAt, looks)
    events.sort((a, b) => a.seq - b.seq)
    return { events, isFull: rows.length === read, waitingLanes: [...waitingLanes] }
  }
}

function isWanted(row: SQL, { onlyTopics, exceptTopics }: TopicLimits): SQL {
  const excepted = sql`${row}.topic <> all (${encodeArray(exceptTopics)}::text::text[])`
  if (!onlyTopics) return excepted
  return sql`${row}.topic = any (${encodeArray(onlyTopics)}::text::text[]) and ${excepted}`
}
