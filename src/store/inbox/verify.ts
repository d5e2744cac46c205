// Checks that the table is there with all its columns, and is not too new for this version. start() runs this check, after
// migrate() if it is set.
import { sql } from '../../drivers/sql.ts'
import { raceTimeout } from '../../runtime/race-timeout.ts'
import { runInBackground } from '../database.ts'
import { newerMigrations } from '../migrate.ts'
import type { InboxContext } from './statement.ts'

export function verifyStatement(context: InboxContext) {
  const { inbox, rules } = context
  /** Returns the migrations of a newer version that were applied here. */
  return async (): Promise<readonly string[]> => {
    await runInBackground(
      context,
      'look for the inbox table',
      sql`select consumer, event_id, aggregate_type, aggregate_id, lane, seq, handled_at from ${inbox} limit 0`,
    )
    const newer = newerMigrations(context.db, 'inbox', rules.table)
    const found = await raceTimeout(newer, context.statementTimeoutMs)
    return found === 'late' ? [] : found
  }
}
