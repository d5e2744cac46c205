// Records acks. An ack is a fact: it wins over every other state, whichever process holds the row (rule 6).
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import { isOneOf } from './rows.ts'
import type { StatementContext } from './statement.ts'

export function recordPublishedStatement(context: StatementContext) {
  const { outbox, rules } = context
  return async (ids: readonly string[]): Promise<Set<string>> => {
    const acked = isOneOf(ids)
    const rows = await runInBackground<{ id: string }>(
      context,
      'record what was published',
      rules.keepPublished
        ? sql`
        update ${outbox} o set status = 'published', published_at = clock_timestamp(),
          last_attempt_at = clock_timestamp(), updated_at = clock_timestamp(), last_error = null,
          lease_token = null
        where ${acked} and o.status <> 'published' returning o.id::text`
        : sql`delete from ${outbox} o where ${acked} returning o.id::text`,
    )
    return new Set(rows.map((row) => row.id))
  }
}
