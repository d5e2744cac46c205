// How our statements run on TypeORM, and what it returns. Described by shape, so that no user has to install TypeORM for
// it. They go to the connection itself: TypeORM would log their parameters, and repeat them in the errors that it wraps.
import type { Executor } from './driver.ts'
import { type NodePostgresClient, queryNodePostgres } from './node-postgres-query.ts'
import type { Statement } from './sql.ts'

/** One connection, from when it is first used until it is released. */
export interface TypeormRunner {
  readonly isTransactionActive: boolean
  readonly isReleased: boolean
  // Promises of TypeORM's own types, of whichever version.
  // oxlint-disable-next-line typescript/no-explicit-any
  connect(): Promise<any>
  release(): Promise<void>
}

/** What emitIn() accepts of TypeORM: the manager that transaction() passes to its callback, or a query runner. */
export type TypeormOwn = TypeormRunner | TypeormManager

interface TypeormManager {
  readonly queryRunner?: TypeormRunner | undefined
  // oxlint-disable-next-line typescript/no-explicit-any
  getTreeRepository(target: any): any
}

interface TypeormSource {
  createQueryRunner(): TypeormRunner
}

export async function queryTypeorm(
  source: TypeormSource,
  statement: Statement,
): Promise<unknown[]> {
  const runner = source.createQueryRunner()
  try {
    return await queryRunner(runner, statement)
  } finally {
    await runner.release()
  }
}

export async function queryRunner(runner: TypeormRunner, statement: Statement) {
  return await queryNodePostgres((await runner.connect()) as NodePostgresClient, statement)
}

export function isTypeormSource(value: unknown): value is TypeormSource {
  const { createQueryRunner, createEntityManager } = methodsOf(value)
  return typeof createQueryRunner === 'function' && typeof createEntityManager === 'function'
}

/** Whether this is a manager or a query runner, in a transaction or not. */
export function isTypeorm(value: unknown): value is TypeormOwn {
  const { getTreeRepository, startTransaction, commitTransaction } = methodsOf(value)
  return (
    typeof getTreeRepository === 'function' ||
    (typeof startTransaction === 'function' && typeof commitTransaction === 'function')
  )
}

/** The query runner of an open transaction, or null. */
export function typeormRunner(tx: TypeormOwn): TypeormRunner | null {
  const runner = 'isTransactionActive' in tx ? tx : tx.queryRunner
  return runner?.isTransactionActive && !runner.isReleased ? runner : null
}

export function typeormExecutor(tx: TypeormOwn): Executor | null {
  const runner = typeormRunner(tx)
  return runner && { query: (statement) => queryRunner(runner, statement) }
}

function methodsOf(value: unknown): Record<string, unknown> {
  return (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
}
