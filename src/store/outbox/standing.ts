// The state of events that this process committed and whose outcome it does not know: another instance may have sent them,
// and what they wait for may be held by another process. One statement for all of them, by id.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import type { EventStatus } from '../../event/event.ts'
import type { Standing } from './outbox-store.ts'
import {
  type AnyNumber,
  DEAD_LETTER_COPY,
  encodeArray,
  isDeadLaneIndexed,
  isLaneIndexed,
  isUnfinished,
} from './rows.ts'
import type { StatementContext } from './statement.ts'

interface StandingRow {
  id: string
  status: EventStatus
  attempts: AnyNumber
  error: string | null
  isLeased: AnyNumber
  rests: AnyNumber
  isHeld: AnyNumber
  aheadTopic: string | null
  aheadIsLeased: AnyNumber | null
  aheadRests: AnyNumber | null
}

export function standingStatement(context: StatementContext) {
  const { outbox, rules } = context
  const [o, p] = [sql`o`, sql`p`]
  const isLeased = (row: typeof o) =>
    sql`(${row}.lease_token is not null and ${row}.available_at > clock_timestamp())::int`
  const rests = (row: typeof o) =>
    sql`(${row}.status = 'failed' and ${row}.lease_token is null and ${row}.available_at > clock_timestamp())::int`
  const isHeld = rules.deadLettersHold
    ? sql`exists (select from ${outbox} d where d.lane = o.lane and d.seq < o.seq
        and ${isDeadLaneIndexed(sql`d`)} and d.aggregate_type <> ${DEAD_LETTER_COPY}::text)`
    : sql`false`
  return async (ids: readonly string[]): Promise<ReadonlyMap<string, Standing>> => {
    const rows = await runInBackground<StandingRow>(
      context,
      'look up events',
      sql`
        select o.id::text, o.status, o.attempts, o.last_error as error, ${isLeased(o)} as "isLeased",
          ${rests(o)} as rests, (${isUnfinished(o)} and ${isHeld})::int as "isHeld",
          a.topic as "aheadTopic", a.is_leased as "aheadIsLeased", a.rests as "aheadRests"
        from ${outbox} o left join lateral (
          select p.topic, ${isLeased(p)} as is_leased, ${rests(p)} as rests from ${outbox} p
          where p.lane = o.lane and p.seq < o.seq and ${isLaneIndexed(p)} order by p.seq limit 1
        ) a on ${isUnfinished(o)}
        where o.id = any (${encodeArray(ids)}::text::uuid[])`,
    )
    return new Map(rows.map((row) => [row.id, toStanding(row)]))
  }
}

function toStanding(row: StandingRow): Standing {
  const { status, error, aheadTopic: topic, aheadIsLeased, aheadRests } = row
  return {
    status,
    attempts: Number(row.attempts),
    error,
    isLeased: is(row.isLeased),
    rests: is(row.rests),
    isHeld: is(row.isHeld),
    ahead: topic === null ? null : { topic, isLeased: is(aheadIsLeased), rests: is(aheadRests) },
  }
}

function is(flag: AnyNumber | null): boolean {
  return Number(flag) === 1
}
