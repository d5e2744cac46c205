// Whether the server takes writes. A standby does not, and reads alone do not show it: all of health() works there.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import type { StatementContext } from './statement.ts'

export function takesWritesStatement(context: StatementContext) {
  return async (): Promise<boolean> => {
    const [row] = await runInBackground<{ isReadOnly: string }>(
      context,
      'ask whether it takes writes',
      sql`select current_setting('transaction_read_only') as "isReadOnly"`,
    )
    return row!.isReadOnly !== 'on'
  }
}
