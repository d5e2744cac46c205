// The outcomes of transactions that hold events from emitIn(). Reads no table. From the snapshot's end on, a transaction is
// in progress, or unknown to a server that was promoted; a query for an unknown one would be an error. Postgres forgets the
// outcome of very old transactions: they count as committed, so that their rows are looked at.
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
          lateral (select case when id >= pg_snapshot_xmax(pg_current_snapshot()) then 'in progress'
            else coalesce(pg_xact_status(id), 'committed') end as outcome) status
        where outcome <> 'in progress'`,
    )
    return new Map(rows.map(({ id, outcome }) => [id, outcome === 'committed']))
  }
}
