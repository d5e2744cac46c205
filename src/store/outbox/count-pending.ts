// How many events are pending, counted up to the limit.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import type { AnyNumber } from './rows.ts'
import type { StatementContext } from './statement.ts'

export function countPendingStatement(context: StatementContext) {
  const { outbox } = context
  return async (limit: number): Promise<number> => {
    const [counted] = await runInBackground<{ count: AnyNumber }>(
      context,
      'count what waits',
      sql`select count(*)::int as count
        from (select 1 from ${outbox} where status = 'pending' limit ${limit}::int) waiting`,
    )
    return Number(counted!.count)
  }
}
