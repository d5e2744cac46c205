// Checks that the table is there with all its columns. start() runs this check, after migrate() if it is set.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import type { InboxContext } from './statement.ts'

export function verifyStatement(context: InboxContext) {
  const { inbox } = context
  return async (): Promise<void> => {
    await runInBackground(
      context,
      'look for the inbox table',
      sql`select consumer, event_id, aggregate_type, aggregate_id, lane, seq, handled_at from ${inbox} limit 0`,
    )
  }
}
