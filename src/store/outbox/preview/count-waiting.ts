// How many unsent events a pause would hold back.
import { sql, type SQL } from '../../../drivers/sql.ts'
import { type Background, runInBackground } from '../../database.ts'
import type { Count } from '../outbox-store.ts'
import { type AnyNumber, hiddenLimit, isDueIndexed, isLaneIndexed } from '../rows.ts'

export function countWaitingStatement(context: Background & { readonly outbox: SQL }) {
  /** Of a topic, or with null of all. */
  return async (topic: string | null, most: number): Promise<Count> => {
    const which =
      topic === null
        ? sql`${isLaneIndexed(sql`o`)} order by o.lane, o.seq`
        : sql`${isDueIndexed(sql`o`)} and o.topic = ${topic}::text order by o.available_at`
    const [row] = await runInBackground<{ count: AnyNumber }>(
      context,
      'count what a pause would hold back',
      sql`select count(*)::int as count from (
        select from ${context.outbox} o where ${which} limit ${hiddenLimit(most + 1)}
      ) found`,
    )
    const count = Number(row!.count)
    return { count: Math.min(count, most), exact: count <= most }
  }
}
