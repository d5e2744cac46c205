// The store on Postgres, assembled from its statements.
import type { Database, Executor } from '../../drivers/driver.ts'
import { migrate } from '../migrate.ts'
import { qualifiedName } from '../table-name.ts'
import { discardFailuresStatement, retryFailuresStatement } from './change-failures.ts'
import { cancelInStatement, cancelStatement } from './cancel.ts'
import { cdcStatement } from './cdc/look.ts'
import { claimStatement } from './claim.ts'
import { countDeadLettersStatement } from './count-dead-letters.ts'
import { countFailuresStatement } from './count-failures.ts'
import { countPendingStatement } from './count-pending.ts'
import { countUnroutedStatement } from './count-unrouted.ts'
import { dueTopicsStatement } from './due-topics.ts'
import { endedTransactionsStatement } from './ended-transactions.ts'
import { groupFailuresStatement } from './group-failures.ts'
import { Horizon } from './horizon.ts'
import { instanceStatements } from './instances.ts'
import { leaseStatement } from './lease.ts'
import { listDeadLettersStatement } from './list-dead-letters.ts'
import { listEventsStatement } from './list-events.ts'
import { dueStatement } from './make-due.ts'
import type { Store, StoreRules } from './outbox-store.ts'
import { partitionStatements } from './partitions.ts'
import { pauseStatements } from './pauses.ts'
import { purgeStatement } from './purge.ts'
import { recordFailedStatement } from './record-failed.ts'
import { recordPublishedStatement } from './record-published.ts'
import { redactStatement } from './redact.ts'
import { renewStatement } from './renew.ts'
import { rerouteStatement } from './reroute.ts'
import { saveInStatement, saveStatement } from './save.ts'
import { showEventStatement } from './show-event.ts'
import { standingStatement } from './standing.ts'
import type { StatementContext } from './statement.ts'
import { statsStatement } from './stats.ts'
import { takesWritesStatement } from './takes-writes.ts'
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
    cancel: cancelStatement(context),
    cancelIn: cancelInStatement(context),
    dueTopics: dueStatement(context, dueTopics),
    claim: claimStatement(context),
    wake: wakeStatement(context),
    renew: renewStatement(context),
    standing: standingStatement(context),
    recordPublished: recordPublishedStatement(context),
    recordFailed: recordFailedStatement(context),
    purge: purgeStatement(context),
    partitions: partitionStatements(context),
    control: { ...pauseStatements(context), ...instanceStatements(context) },
    failures: {
      groups: groupFailuresStatement(context),
      count: countFailuresStatement(context),
      retry: retryFailuresStatement(context),
      discard: discardFailuresStatement(context),
    },
    reroute: rerouteStatement(context),
    redact: redactStatement(context),
    browse: { list: listEventsStatement(context), show: showEventStatement(context) },
    listDeadLetters: listDeadLettersStatement(context),
    countDeadLetters: countDeadLettersStatement(context),
    countUnrouted: countUnroutedStatement(context, dueTopics),
    countPending: countPendingStatement(context, dueTopics),
    stats: statsStatement(context, dueTopics),
    takesWrites: takesWritesStatement(context),
    verify: verifyStatement(context),
    cdc: cdcStatement({ ...context, table }),
    migrate: (options) => migrate(db, 'outbox', table, options),
  }
}
