// Wakes lanes: makes the first events of each that a claim has put off due again. The claim that takes the last of them
// returns the lane, so what is behind it follows by itself.
import { sql, type SQL } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import { encodeArray, isLaneIndexed } from './rows.ts'
import type { StatementContext } from './statement.ts'

export function wakeStatement(context: StatementContext) {
  return async (lanes: readonly number[]): Promise<void> => {
    const given = sql`select unnest(${encodeArray(lanes.map(String))}::text::bigint[]) as lane`
    await runInBackground(context, 'wake lanes', wakeLanes(context, given, 1))
  }
}

/** All lanes together. */
const MOST = 10_000

// Not only what has been put off by now: a claim may be about to do that. This waits for its lock, and then wins.
/** Of the first events of each lane, in `p`, `which` can leave some out. */
export function wakeLanes(
  { outbox }: StatementContext,
  lanes: SQL,
  each: number,
  which = sql`true`,
): SQL {
  return sql`
    update ${outbox} o set available_at = clock_timestamp(), updated_at = clock_timestamp()
    from (
      select p.id from (${lanes}) l cross join lateral (
        select p.id, p.available_at from ${outbox} p where p.lane = l.lane and ${isLaneIndexed(sql`p`)}
          and p.lease_token is null and p.status = 'pending'
        order by p.seq limit ${each}::int
      ) p where ${which} limit ${MOST}::int
    ) first
    where o.id = first.id and o.lease_token is null and o.status = 'pending'`
}
