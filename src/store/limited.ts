// A database whose statements neither wait for locks nor run for long, for a person who waits for the result. Postgres itself
// ends them, so that a statement whose caller has gone holds no connection. Each statement gets a transaction of its own with
// settings that end with it, and leave nothing behind in a session that PgBouncer lends to others next.
import type { Database } from '../drivers/driver.ts'
import { sql } from '../drivers/sql.ts'

export interface Limits {
  readonly lockMs: number
  /** 0: it may take as long as it takes. */
  readonly statementMs: number
}

/** Transactions of begin() wait as usual. */
export function withLimits<TTx>(db: Database<TTx>, { lockMs, statementMs }: Limits): Database<TTx> {
  const limits = sql`select set_config('lock_timeout', ${String(lockMs)}::text, true),
    set_config('statement_timeout', ${String(statementMs)}::text, true)`
  return {
    ...db,
    query: (statement, options) =>
      db.begin(async (tx) => {
        await tx.query(limits)
        return await tx.query(statement, options)
      }),
  }
}
