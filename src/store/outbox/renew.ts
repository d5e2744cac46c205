// Extends leases by id and token. SKIP LOCKED: a row that another statement is changing is about to get an outcome or a
// new holder. Waiting for it while holding the others would keep their outcomes from being recorded.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import type { LeaseRef } from './outbox-store.ts'
import { isOneOf, isUnfinished } from './rows.ts'
import type { StatementContext } from './statement.ts'

export function renewStatement(context: StatementContext) {
  const { outbox } = context
  return async (leases: readonly LeaseRef[], ms: number): Promise<ReadonlyMap<string, string>> => {
    const rows = await runInBackground<LeaseRef>(
      context,
      'renew leases',
      sql`
        with held as materialized (
          select o.id from ${outbox} o
          join json_to_recordset(${JSON.stringify(leases)}::text::json) as e(id uuid, token uuid)
            on o.id = e.id and o.lease_token = e.token
          where ${isOneOf(leases.map(({ id }) => id))} and ${isUnfinished(sql`o`)} for update of o skip locked
        )
        update ${outbox} o set available_at = clock_timestamp() + ${ms}::float8 * interval '1 ms',
          updated_at = clock_timestamp()
        from held where o.id = held.id returning o.id::text, o.lease_token::text as token`,
    )
    return new Map(rows.map(({ id, token }) => [id, token]))
  }
}
