// Checks that the table and its function are there and work. start() runs this check, after migrate() if it is set.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import { StoreError } from '../../errors.ts'
import { isDenied } from '../database.ts'
import { followsFunction } from './save.ts'
import type { StatementContext } from './statement.ts'

export function verifyStatement(context: StatementContext) {
  const { outbox, rules } = context
  return async (): Promise<void> => {
    await runInBackground(
      context,
      'look for the outbox table',
      sql`select id, seq, lane, payload, headers, status, attempts, max_attempts, available_at,
        lease_token, worker_id from ${outbox} limit 0`,
    )
    const { name, signature } = followsFunction(rules.table)
    await runInBackground(
      context,
      'call the function of the save',
      sql`select ${name}(0::bigint, 0::bigint, false)`,
    ).catch((cause) => {
      if (!isAboutFunction(cause)) throw cause
      throw new StoreError(
        'TABLE_MISSING',
        `the function ${signature}, which finds the events that a new event has to follow, is missing or cannot run; call migrate(), or, if the table is in your own migrations, run drizzle/0001_follows.sql of this package with the names of your table, and again when you rename its schema`,
        { cause },
      )
    })
  }
}

/** Whether it is missing, cannot find its table, or may not be called; a lost connection says nothing about it. */
function isAboutFunction(error: unknown): error is StoreError {
  return error instanceof StoreError && (error.code === 'TABLE_MISSING' || isDenied(error))
}
