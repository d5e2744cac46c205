// What every statement of the inbox receives. Each statement has its own file here. No session state, so it works behind
// PgBouncer.
import type { Database } from '../../drivers/driver.ts'
import type { SQL } from '../../drivers/sql.ts'
import type { Background } from '../database.ts'
import { qualifiedName, type TableName } from '../table-name.ts'

/** The options that the statements need. */
export interface InboxRules {
  readonly table: TableName
  readonly consumer: string
  readonly retentionMs: number
}

export interface InboxContext extends Background {
  readonly rules: InboxRules
  /** The table, quoted and with its schema. */
  readonly inbox: SQL
}

const STATEMENT_TIMEOUT_MS = 30_000

export function inboxContext(db: Database<unknown>, rules: InboxRules): InboxContext {
  const inbox = qualifiedName(rules.table)
  return { db, statementTimeoutMs: STATEMENT_TIMEOUT_MS, rules, inbox }
}
