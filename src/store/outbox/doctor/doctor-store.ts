// What `aftercommit doctor` reads besides the table itself: the server, the catalogs, other sessions. All of it only reads,
// and each statement runs by itself, so that a role without the right to one still gets the others.
import type { Database } from '../../../drivers/driver.ts'
import { qualifiedName } from '../../table-name.ts'
import type { StoreRules } from '../outbox-store.ts'
import { cdcStatement } from '../cdc/look.ts'
import { blockersStatement } from './blockers.ts'
import { defaultPartitionStatement } from './default-partition.ts'
import { grantsStatement } from './grants.ts'
import { newestEventStatement } from './newest-event.ts'
import { oldTransactionsStatement } from './old-transactions.ts'
import { relationsStatement } from './relations.ts'
import { serverStatement } from './server.ts'
import { slotsStatement } from './slots.ts'
import { vacuumStatement } from './vacuum.ts'

export interface DoctorStore {
  readonly server: ReturnType<typeof serverStatement>
  readonly relations: ReturnType<typeof relationsStatement>
  readonly grants: ReturnType<typeof grantsStatement>
  readonly vacuum: ReturnType<typeof vacuumStatement>
  readonly oldTransactions: ReturnType<typeof oldTransactionsStatement>
  readonly slots: ReturnType<typeof slotsStatement>
  readonly cdc: ReturnType<typeof cdcStatement>
  readonly newestEvent: ReturnType<typeof newestEventStatement>
  readonly blockers: ReturnType<typeof blockersStatement>
  readonly defaultPartition: ReturnType<typeof defaultPartitionStatement>
}

export function doctorStore(db: Database<unknown>, rules: StoreRules): DoctorStore {
  const { table, statementTimeoutMs } = rules
  const context = { db, statementTimeoutMs, table, outbox: qualifiedName(table) }
  return {
    server: serverStatement(context),
    relations: relationsStatement(context),
    grants: grantsStatement(context),
    vacuum: vacuumStatement(context),
    oldTransactions: oldTransactionsStatement(context),
    slots: slotsStatement(context),
    cdc: cdcStatement(context),
    newestEvent: newestEventStatement(context),
    blockers: blockersStatement(context),
    defaultPartition: defaultPartitionStatement(context),
  }
}
