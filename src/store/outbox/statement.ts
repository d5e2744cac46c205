// What every statement of the outbox receives. Each statement has its own file here. Lists travel as one text parameter
// (JSON or an array literal) that the statement casts: every driver binds a string in the same way, and the statement's
// text is the same for any number of rows. No session state, so it works behind PgBouncer.
import type { SQL } from '../../drivers/sql.ts'
import type { Background } from '../database.ts'
import type { Horizon } from './horizon.ts'
import type { StoreRules } from './outbox-store.ts'

export interface StatementContext extends Background {
  readonly rules: StoreRules
  /** The table, quoted and with its schema. */
  readonly outbox: SQL
  readonly horizon: Horizon
}
