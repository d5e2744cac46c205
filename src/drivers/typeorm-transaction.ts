// What a unit of work receives on TypeORM: an EntityManager on a copy of the query runner that checks each query when it runs.
// Repositories and query builders take the runner from their manager, so nothing gets past it.
import type { DataSource, EntityManager, QueryRunner } from 'typeorm'
import type { TransactionWatch } from './driver.ts'
import { controlError, refuseControl } from './transaction-text.ts'

type Work = (manager: EntityManager) => unknown

export function guardManager(
  source: DataSource,
  runner: QueryRunner,
  { use, savepoint }: TransactionWatch<EntityManager>,
): EntityManager {
  const manager = source.createEntityManager(guardRunner(runner, use))
  const transaction = async (...given: unknown[]) => {
    use()
    return await savepoint(given.at(-1) as Work)
  }
  return Object.assign(manager, { transaction })
}

function guardRunner(runner: QueryRunner, check: () => void): QueryRunner {
  const checkText = (text: string) => {
    check()
    refuseControl(text)
  }
  const query = async (...given: Parameters<QueryRunner['query']>) => {
    checkText(given[0])
    return (await runner.query(...given)) as unknown
  }
  const own = {
    // TypeORM reads it first, and would refuse a late use in its own words.
    isReleased: false,
    query,
    async stream(...given: Parameters<QueryRunner['stream']>) {
      checkText(given[0])
      return await runner.stream(...given)
    },
    // emitIn() of another outbox reads it too.
    async connect() {
      check()
      return (await runner.connect()) as unknown
    },
    startTransaction: refuse('BEGIN'),
    commitTransaction: refuse('COMMIT'),
    rollbackTransaction: refuse('ROLLBACK'),
    release: refuse('release()'),
  }
  // Its `manager` is set by the manager that is made with it, and the runner keeps its own.
  const copy = Object.assign(Object.create(runner) as QueryRunner, own)
  // Subscribers get the runner of the broadcaster, and its manager.
  const broadcaster = Object.create(runner.broadcaster) as QueryRunner['broadcaster']
  return Object.assign(copy, { broadcaster: Object.assign(broadcaster, { queryRunner: copy }) })
}

function refuse(statement: string) {
  return async () => {
    throw controlError(statement)
  }
}
