// How many dead letters there are, by event type, counted up to the limit.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import { type CountRow, hiddenLimit, isDeadIndexed, toCounts } from './rows.ts'
import type { StatementContext } from './statement.ts'

export function countDeadLettersStatement(context: StatementContext) {
  const { outbox } = context
  return async (limit: number): Promise<Record<string, number>> => {
    const rows = await runInBackground<CountRow>(
      context,
      'count dead letters',
      sql`
        select event_type as name, count(*)::int as count
        from (select o.event_type from ${outbox} o where ${isDeadIndexed(sql`o`)}
          order by o.seq limit ${hiddenLimit(limit)}) dead
        group by event_type order by event_type`,
    )
    return toCounts(rows)
  }
}
