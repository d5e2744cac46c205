// A transaction that the application began, of any supported client, whichever the outbox itself is on. Types and checks
// describe the clients by their shape: importing theirs would make every user install them.
import { noTransaction } from '../errors.ts'
import type { Executor } from './driver.ts'
import { execute, sessionOf } from './drizzle.ts'
import { hasEnded } from './mark-transactions.ts'
import { type NodePostgresClient, queryNodePostgres } from './node-postgres-query.ts'
import { type PostgresJsClient, queryPostgresJs } from './postgres-js-query.ts'

interface DrizzleOwn {
  // oxlint-disable-next-line typescript/no-explicit-any
  execute(query: any): PromiseLike<unknown>
  rollback(): unknown
}

/** What emitIn() accepts: Drizzle's or postgres.js's transaction, a node-postgres client, a reserved connection. */
export type OwnTransaction = DrizzleOwn | PostgresJsClient | NodePostgresClient

/** Runs our statements in the transaction. Throws if it is a database, a pool or a client that has none. */
export function executorOf(tx: unknown): Executor {
  if (hasEnded(tx)) throw noTransaction()
  // Drizzle's database has no rollback().
  if (has(tx, 'execute') && has(tx, 'rollback')) {
    // Not prepared: that would go past the guard of a transaction that another outbox watches.
    const query: Executor['query'] = (statement) => execute(tx as DrizzleOwn, statement)
    return has(sessionOf(tx as object)?.client, 'unsafe') ? { query } : inTurn(query)
  }
  // Of postgres.js's clients only the one with all connections can begin(), and of ours only a database can.
  if (has(tx, 'begin')) throw noTransaction()
  if (has(tx, 'unsafe')) {
    return {
      query: (statement, options) => queryPostgresJs(tx as PostgresJsClient, statement, options),
    }
  }
  // Only a pool counts its connections.
  if (has(tx, 'query') && !('totalCount' in (tx as object))) {
    return inTurn((statement) => queryNodePostgres(tx as NodePostgresClient, statement))
  }
  throw noTransaction()
}

/** node-postgres warns of a query that is sent while another one is under way. */
function inTurn(query: Executor['query']): Executor {
  let last: Promise<unknown> = Promise.resolve()
  return {
    query: (statement, options) => {
      const next = last.then(() => query(statement, options))
      last = next.catch(() => {})
      return next
    },
  }
}

function has(tx: unknown, method: string): boolean {
  return typeof (tx as Record<string, unknown> | null | undefined)?.[method] === 'function'
}
