// How many events are unfinished, counted up to the limit.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import { type AnyNumber, hiddenLimit, isDueIndexed } from './rows.ts'
import type { StatementContext } from './statement.ts'

export function countPendingStatement(context: StatementContext) {
  const { outbox } = context
  return async (limit: number): Promise<number> => {
    const [counted] = await runInBackground<{ count: AnyNumber }>(
      context,
      'count what waits',
      sql`select count(*)::int as count
        from (select from ${outbox} o where ${isDueIndexed(sql`o`)}
          order by o.topic, o.available_at, o.seq limit ${hiddenLimit(limit)}) waiting`,
    )
    return Number(counted!.count)
  }
}
