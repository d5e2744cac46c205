// What the inbox needs from a database, assembled from its statements. The table records which events were handled.
import type { Database, Executor } from '../../drivers/driver.ts'
import { migrate } from '../migrate.ts'
import type { Purged } from '../outbox/outbox-store.ts'
import { confirm } from './confirm.ts'
import { purgeStatement } from './purge.ts'
import { type Place, type Recorded, recordStatement } from './record.ts'
import { type InboxRules, inboxContext } from './statement.ts'
import { verifyStatement } from './verify.ts'

export interface InboxStore {
  /**
   * Runs in the transaction of the effects, before them. Waits for another delivery of the same event that is under
   * way, or, with a place, of any event of its aggregate and lane.
   */
  record(tx: Executor, id: string, place: Place | null): Promise<Recorded>
  /** Runs after the effects. Throws if they can no longer be committed. */
  confirm(tx: Executor): Promise<void>
  /** Deletes one batch of old rows of this consumer, in one instance at a time; the others delete nothing. */
  purge(limit: number, after: string | null): Promise<Purged>
  /**
   * Throws TABLE_MISSING if the table is missing or lacks a column, and SCHEMA_NEWER if it needs a newer version. Returns the
   * migrations of a newer version that this one works with.
   */
  verify(): Promise<readonly string[]>
  /** Creates or updates the table. Safe to call from many processes at once. */
  migrate(): Promise<void>
}

export function inboxStore(db: Database<unknown>, rules: InboxRules): InboxStore {
  const context = inboxContext(db, rules)
  return {
    record: recordStatement(context),
    confirm,
    purge: purgeStatement(context),
    verify: verifyStatement(context),
    migrate: () => migrate(db, 'inbox', rules.table),
  }
}
