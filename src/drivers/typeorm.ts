// TypeORM on Postgres: `createOutbox({ db: typeormDatabase(dataSource) })`. A unit of work runs on a query runner of its own,
// and its callback gets an EntityManager, as with dataSource.transaction(). TypeORM treats any response to COMMIT as success,
// and subscribers run between the save and COMMIT, so we look at the response ourselves.
import type { DataSource, EntityManager, QueryRunner } from 'typeorm'
import { noTransaction, OutboxOptionsError, rolledBack } from '../errors.ts'
import type { Database, OpenTransaction, TransactionSettings } from './driver.ts'
import { markTransactions } from './mark-transactions.ts'
import { type NodePostgresClient, queryNodePostgres } from './node-postgres-query.ts'
import { type ClientTransaction, openTransaction } from './statement-savepoints.ts'
import { settingsText } from './transaction-text.ts'
import {
  isTypeorm,
  isTypeormSource,
  queryRunner,
  queryTypeorm,
  typeormRunner,
} from './typeorm-query.ts'
import { guardManager } from './typeorm-transaction.ts'

/** A database for createOutbox(), from a DataSource of type 'postgres'. The outbox never destroys it. */
export function typeormDatabase(source: DataSource): Database<EntityManager, DataSource> {
  if (!isTypeormSource(source)) {
    throw new OutboxOptionsError(
      'typeormDatabase() takes a DataSource, not a manager or a query runner',
    )
  }
  const { type } = source.options
  if (type !== 'postgres') {
    throw new OutboxOptionsError(
      `typeormDatabase() needs a DataSource of type 'postgres', got '${type}'`,
    )
  }
  return {
    client: source,
    query: (statement) => queryTypeorm(source, statement),
    begin: (work, settings = {}) => begin(source, settings, work),
    join: (manager) => join(source, manager),
    watched(transact) {
      const transaction = async (...given: unknown[]) => {
        const work = given.pop() as (manager: unknown) => unknown
        const [level] = given as [string?]
        const isolationLevel = level?.toLowerCase() as 'serializable' | undefined
        return await transact(work, isolationLevel ? { isolationLevel } : {})
      }
      const manager = withOwn(source.manager, { transaction })
      return withOwn(source, { transaction, manager })
    },
    // DataSource.transaction() goes through it, and so do repositories.
    mark: (mark) => markTransactions(source.manager, 'transaction', mark),
  }
}

function withOwn<T extends object>(target: T, own: Record<string, unknown>): T {
  return new Proxy(target, {
    get: (_, property, receiver) =>
      Object.hasOwn(own, property)
        ? own[property as string]
        : (Reflect.get(target, property, receiver) as unknown),
  })
}

async function begin<T>(
  source: DataSource,
  settings: TransactionSettings,
  work: (open: OpenTransaction<EntityManager>) => Promise<T>,
): Promise<T> {
  const runner = source.createQueryRunner()
  try {
    const connection = (await runner.connect()) as NodePostgresClient
    checkCommit(runner, connection)
    await runner.startTransaction()
    const session: ClientTransaction<EntityManager> = {
      query: (statement) => queryNodePostgres(connection, statement),
      guard: (watch) => guardManager(source, runner, watch),
      isOver: false,
    }
    try {
      const text = settingsText(settings)
      if (text) await session.query({ text: `set transaction ${text}`, values: [] })
      const result = await work(openTransaction(session))
      session.isOver = true
      await runner.commitTransaction()
      return result
    } catch (error) {
      session.isOver = true
      // If the rollback fails too, the work's error still explains what happened.
      if (runner.isTransactionActive) await runner.rollbackTransaction().catch(() => {})
      throw error
    }
  } finally {
    await runner.release()
  }
}

/** After a failed statement, Postgres reports ROLLBACK and no error. The runner is ours alone, so its method may be replaced. */
function checkCommit(runner: QueryRunner, connection: NodePostgresClient): void {
  const query = runner.query.bind(runner) as (...given: unknown[]) => Promise<unknown>
  runner.query = async (...given: unknown[]) => {
    if (given[0] !== 'COMMIT') return (await query(...given)) as never
    const { command } = (await connection.query('COMMIT')) as { command: string }
    if (command !== 'COMMIT') throw rolledBack(`Postgres responded to COMMIT with ${command}`)
    return undefined as never
  }
}

// The opener of the transaction knows when it is over. TypeORM's own nested transactions and ours begin the same way.
function join(source: DataSource, manager: EntityManager): OpenTransaction<EntityManager> {
  const runner = isTypeorm(manager) ? typeormRunner(manager) : null
  if (!runner || !('transaction' in manager)) throw noTransaction()
  return {
    tx: manager,
    query: (statement) => queryRunner(runner, statement),
    savepoint: (work) => manager.transaction((inner) => work(join(source, inner))),
    guarded: (watch) => guardManager(source, runner as QueryRunner, watch),
  }
}
