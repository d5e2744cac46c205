// The claim: takes over rows that no process holds, in order, without waiting for other statements (rule 7). Its cost
// must depend neither on history nor on how many rows of a lane wait. Its part in delivery/order.ts:
//
// 1. locked: rows that are due, oldest first, skipping those that another claim is taking. A row is a candidate only if
//    the head of its lane is due no later: a head that rests or has no reachable topic holds back its followers, and a
//    head that is due comes first. Only the head is examined, by one index probe; comparing with all earlier rows of
//    the lane took 10 s at 5,000 rows, this takes 0.1 s. The outer join lets Postgres remember the head for all rows of
//    a lane: behind a resting head, 50,000 followers cost 0.05 s instead of 1.6 s. The limit is hidden from the
//    planner, which would sort all due rows if it expected fewer of them: 2 s with 100,000 rows, 0.02 s this way.
// 2. taken: SKIP LOCKED may have left the head, or a row in the middle, to another claim. From each lane, only the run
//    that begins with its oldest pending row is taken: side by side, the n-th locked row is the n-th of all pending
//    rows. Asking for each row whether an earlier one is missing took 8 s for 5,000 rows of one lane, and so did a join
//    where Postgres expected a small one; this takes 0.2 s.
import { sql, type SQL } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import type { OutboxEvent } from '../../event/event.ts'
import type { ClaimRequest } from './outbox-store.ts'
import {
  DEAD_LETTER_COPY,
  EVENT_COLUMNS,
  type EventRow,
  encodeArray,
  PENDING,
  toEvent,
} from './rows.ts'
import type { StatementContext } from './statement.ts'

export function claimStatement(context: StatementContext) {
  const { outbox, rules } = context
  const { deadLettersHold } = rules
  /** The oldest dead letter of a lane, if dead letters hold back later events. */
  const firstDead = (of: SQL) => sql`(select d.seq from ${outbox} d where d.lane = ${of}.lane
    and d.status = 'dead_letter' and d.aggregate_type <> ${DEAD_LETTER_COPY}::text
    order by d.seq limit 1)`
  const isHeld = deadLettersHold ? sql`p.seq > ${firstDead(sql`p`)}` : sql`false`
  const beforeDead = deadLettersHold
    ? sql`and (k.first_dead is null or side.seq < k.first_dead)`
    : sql``

  return async (request: ClaimRequest): Promise<OutboxEvent[]> => {
    const { lease, limit } = request
    const topics = topicsOf(request)
    // now() is the start of this short transaction. Unlike clock_timestamp(), it can be looked up in the index.
    const rows = await runInBackground<EventRow>(
      context,
      'claim events',
      sql`
        with locked as materialized (
          select o.id, o.seq, o.lane from ${outbox} o
          left join lateral (
            select case when ${topics.unwanted(sql`p`)} or ${isHeld} then 'infinity'
              else p.available_at end as due_at
            from ${outbox} p
            where p.lane = o.lane and p.status = ${PENDING} and p.status <> 'published'
            order by p.seq limit 1
          ) head on true
          where o.status = 'pending' and o.available_at <= now() and ${topics.wanted(sql`o`)}
            and (head.due_at is null or o.available_at >= head.due_at)
          order by o.available_at, o.seq limit (select ${limit}::int) for update of o skip locked
        ), taken as materialized (
          select side.id from (
            select lane, count(*) as n, array_agg(seq order by seq) as seqs,
              array_agg(id order by seq) as ids,
              ${deadLettersHold ? firstDead(sql`l`) : sql`null`} as first_dead
            from locked l group by lane
          ) k cross join lateral unnest(
            array(select p.seq from ${outbox} p
              where p.lane = k.lane and p.status = ${PENDING} and p.status <> 'published'
              order by p.seq limit k.n),
            k.seqs, k.ids
          ) as side(oldest, seq, id)
          where side.seq = side.oldest ${beforeDead}
        )
        update ${outbox} o set lease_token = ${lease.token}::text::uuid,
          worker_id = ${lease.workerId}::text, updated_at = clock_timestamp(),
          available_at = clock_timestamp() + ${lease.ms}::float8 * interval '1 ms'
        from taken where o.id = taken.id
        returning ${EVENT_COLUMNS}`,
    )
    return rows.map(toEvent).toSorted((a, b) => a.seq - b.seq)
  }
}

/** Conditions on a row's topic: that the row may be claimed, and that it may not. */
function topicsOf({ exceptTopics, onlyTopics }: ClaimRequest) {
  const excepted = sql`${encodeArray(exceptTopics)}::text::text[]`
  if (!onlyTopics) {
    return {
      wanted: (row: SQL) => sql`${row}.topic <> all (${excepted})`,
      unwanted: (row: SQL) => sql`${row}.topic = any (${excepted})`,
    }
  }
  const reachable = onlyTopics.filter((topic) => !exceptTopics.includes(topic))
  const only = sql`${encodeArray(reachable)}::text::text[]`
  return {
    wanted: (row: SQL) => sql`${row}.topic = any (${only})`,
    unwanted: (row: SQL) => sql`${row}.topic <> all (${only})`,
  }
}
