// A transaction that the application began, of any supported client, whichever the outbox itself is on. Types and checks
// describe the clients by their shape: importing theirs would make every user install them.
import { noTransaction } from '../errors.ts'
import { Turns } from '../runtime/turns.ts'
import type { Executor } from './driver.ts'
import { execute, sessionOf } from './drizzle.ts'
import { isKysely, kyselyExecutor, type KyselyOwn } from './kysely-query.ts'
import { isKnex, knexExecutor, type KnexOwn } from './knex-query.ts'
import { hasEnded } from './mark-transactions.ts'
import { type NodePostgresClient, queryNodePostgres } from './node-postgres-query.ts'
import { isTypeorm, isTypeormSource, typeormExecutor, type TypeormOwn } from './typeorm-query.ts'
import { isPrisma, prismaExecutor, type PrismaOwn } from './prisma-query.ts'
import { type PostgresJsClient, queryPostgresJs } from './postgres-js-query.ts'

interface DrizzleOwn {
  // oxlint-disable-next-line typescript/no-explicit-any
  execute(query: any): PromiseLike<unknown>
  rollback(): unknown
}

/** What emitIn() accepts: the transaction of any supported client, a node-postgres client, a reserved connection. */
export type OwnTransaction =
  | DrizzleOwn
  | KyselyOwn
  | KnexOwn
  | TypeormOwn
  | PrismaOwn
  | PostgresJsClient
  | NodePostgresClient

/** Runs our statements in the transaction. Throws if it is a database, a pool or a client that has none. */
export function executorOf(tx: unknown): Executor {
  if (hasEnded(tx)) throw noTransaction()
  const executor = executorIn(tx)
  if (!executor) throw noTransaction()
  return executor
}

function executorIn(tx: unknown): Executor | null {
  if (isKysely(tx)) return kyselyExecutor(tx)
  if (isKnex(tx)) return inTurn(tx, knexExecutor(tx))
  if (isPrisma(tx)) return inTurn(tx, prismaExecutor(tx))
  if (isTypeormSource(tx)) return null
  if (isTypeorm(tx)) return inTurn(tx, typeormExecutor(tx))
  // Drizzle's database has no rollback().
  if (has(tx, 'execute') && has(tx, 'rollback')) {
    // Not prepared: that would go past the guard of a transaction that another outbox watches.
    const executor: Executor = { query: (statement) => execute(tx as DrizzleOwn, statement) }
    return has(sessionOf(tx as object)?.client, 'unsafe')
      ? executor
      : inTurn(tx as object, executor)
  }
  // Of postgres.js's clients only the one with all connections can begin(), and of ours only a database can.
  if (has(tx, 'begin')) return null
  if (has(tx, 'unsafe')) {
    return {
      query: (statement, options) => queryPostgresJs(tx as PostgresJsClient, statement, options),
    }
  }
  // Only a pool counts its connections.
  if (has(tx, 'query') && !('totalCount' in (tx as object))) {
    const client = tx as NodePostgresClient
    return inTurn(client, { query: (statement) => queryNodePostgres(client, statement) })
  }
  return null
}

const turns = new WeakMap<object, Turns>()

/**
 * node-postgres warns of a query that is sent while another one is under way. The statements of one call stay together, also
 * if the application makes several calls at once on the same transaction.
 */
function inTurn(tx: object, executor: Executor | null): Executor | null {
  if (!executor) return null
  const own = turns.get(tx) ?? new Turns()
  turns.set(tx, own)
  return {
    query: (statement, options) => own.take(() => executor.query(statement, options)),
  }
}

function has(tx: unknown, method: string): boolean {
  return typeof (tx as Record<string, unknown> | null | undefined)?.[method] === 'function'
}
