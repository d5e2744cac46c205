// What became of transactions that hold events from emitIn(). Reads no table. Postgres forgets the outcome of very old
// transactions: they count as committed, because then someone looks at their rows.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import { encodeArray } from './rows.ts'
import type { StatementContext } from './statement.ts'

export function endedTransactionsStatement(context: StatementContext) {
  return async (ids: readonly string[]): Promise<ReadonlyMap<string, boolean>> => {
    const rows = await runInBackground<{ id: string; outcome: string }>(
      context,
      'ask for transactions',
      sql`
        select id::text, outcome from unnest(${encodeArray(ids)}::text::xid8[]) as id,
          lateral (select coalesce(pg_xact_status(id), 'committed') as outcome) status
        where outcome <> 'in progress'`,
    )
    return new Map(rows.map(({ id, outcome }) => [id, outcome === 'committed']))
  }
}
