// How many due events have a topic without a route, by topic. An event that no publisher claims keeps its place, while
// each lease moves all others back, so it comes to the front.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import { type CountRow, encodeArray, toCounts } from './rows.ts'
import type { StatementContext } from './statement.ts'

export function countUnroutedStatement(context: StatementContext) {
  const { outbox } = context
  return async (routed: readonly string[], limit: number): Promise<Record<string, number>> => {
    const rows = await runInBackground<CountRow>(
      context,
      'count events without a route',
      sql`
        select topic as name, count(*)::int as count
        from (select topic from ${outbox} where status = 'pending' and available_at <= now()
          order by available_at, seq limit ${limit}::int) due
        where topic <> all (${encodeArray(routed)}::text::text[])
        group by topic order by topic`,
    )
    return toCounts(rows)
  }
}
