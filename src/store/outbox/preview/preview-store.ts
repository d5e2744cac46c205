// How many events a change would touch, before it is made. Counted up to a limit, so that the cost is bounded.
import type { Database } from '../../../drivers/driver.ts'
import { qualifiedName } from '../../table-name.ts'
import type { StoreRules } from '../outbox-store.ts'
import { countOldStatement } from './count-old.ts'
import { countWaitingStatement } from './count-waiting.ts'

export interface PreviewStore {
  readonly countOld: ReturnType<typeof countOldStatement>
  readonly countWaiting: ReturnType<typeof countWaitingStatement>
}

export function previewStore(db: Database<unknown>, rules: StoreRules): PreviewStore {
  const { table, statementTimeoutMs } = rules
  const context = { db, statementTimeoutMs, outbox: qualifiedName(table) }
  return { countOld: countOldStatement(context), countWaiting: countWaitingStatement(context) }
}
