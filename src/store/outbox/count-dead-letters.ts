// How many dead letters there are, by event type, counted up to the limit.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import { type CountRow, toCounts } from './rows.ts'
import type { StatementContext } from './statement.ts'

export function countDeadLettersStatement(context: StatementContext) {
  const { outbox } = context
  return async (limit: number): Promise<Record<string, number>> => {
    const rows = await runInBackground<CountRow>(
      context,
      'count dead letters',
      sql`
        select event_type as name, count(*)::int as count
        from (select event_type from ${outbox} where status = 'dead_letter' limit ${limit}::int) dead
        group by event_type order by event_type`,
    )
    return toCounts(rows)
  }
}
