// The store on Postgres, assembled from its statements.
import type { Database, Executor } from '../../drivers/driver.ts'
import { migrate } from '../migrate.ts'
import { qualifiedName } from '../table-name.ts'
import { claimStatement } from './claim.ts'
import { countDeadLettersStatement } from './count-dead-letters.ts'
import { countPendingStatement } from './count-pending.ts'
import { countUnroutedStatement } from './count-unrouted.ts'
import { dueTopicsStatement } from './due-topics.ts'
import { endedTransactionsStatement } from './ended-transactions.ts'
import { Horizon } from './horizon.ts'
import { leaseStatement } from './lease.ts'
import { discardDeadLettersStatement, retryDeadLettersStatement } from './change-dead-letters.ts'
import { listDeadLettersStatement } from './list-dead-letters.ts'
import type { Store, StoreRules } from './outbox-store.ts'
import { partitionStatements } from './partitions.ts'
import { purgeStatement } from './purge.ts'
import { recordFailedStatement } from './record-failed.ts'
import { recordPublishedStatement } from './record-published.ts'
import { renewStatement } from './renew.ts'
import { saveInStatement, saveStatement } from './save.ts'
import type { StatementContext } from './statement.ts'
import { statsStatement } from './stats.ts'
import { verifyStatement } from './verify.ts'
import { wakeStatement } from './wake.ts'

export function postgresStore(db: Database<unknown>, rules: StoreRules): Store<Executor> {
  const { table, statementTimeoutMs } = rules
  const [outbox, horizon] = [qualifiedName(table), new Horizon()]
  const context: StatementContext = { db, statementTimeoutMs, rules, outbox, horizon }
  const dueTopics = dueTopicsStatement(context)
  return {
    save: saveStatement(context),
    saveIn: saveInStatement(context),
    endedTransactions: endedTransactionsStatement(context),
    lease: leaseStatement(context),
    dueTopics: () => dueTopics(),
    claim: claimStatement(context),
    wake: wakeStatement(context),
    renew: renewStatement(context),
    recordPublished: recordPublishedStatement(context),
    recordFailed: recordFailedStatement(context),
    purge: purgeStatement(context),
    partitions: partitionStatements(context),
    listDeadLetters: listDeadLettersStatement(context),
    retryDeadLetters: retryDeadLettersStatement(context),
    discardDeadLetters: discardDeadLettersStatement(context),
    countDeadLetters: countDeadLettersStatement(context),
    countUnrouted: countUnroutedStatement(context, dueTopics),
    countPending: countPendingStatement(context, dueTopics),
    stats: statsStatement(context, dueTopics),
    verify: verifyStatement(context),
    migrate: (options) => migrate(db, 'outbox', table, options),
  }
}
