// A database inside one transaction, for tests that roll back what they did. Each unit of work is a savepoint, and every
// statement of the outbox runs in that transaction too, so it sees what was "committed" there.
import { databaseOf } from '../drivers/database-of.ts'
import type { AnyDatabase, Database, OpenTransaction, TransactionOf } from '../drivers/driver.ts'
import { Turns } from '../runtime/turns.ts'
import { openOn } from '../unit-of-work/surroundings.ts'

/** A database for createOutbox() inside a transaction, which is also what `outbox.db` is then. */
type Inside<TDb extends AnyDatabase> = Database<TransactionOf<TDb>, TransactionOf<TDb>>

/**
 * Runs a test in a transaction and rolls it back, whether the test passes or fails. The test gets a database for
 * createOutbox(), and the transaction for its own statements. Use drain() from this module, and do not start() the outbox: its
 * loops would outlive the transaction.
 */
export async function rolledBack<TDb extends AnyDatabase, T>(
  db: TDb,
  test: (inside: Inside<TDb>, tx: TransactionOf<TDb>) => Promise<T>,
): Promise<T> {
  const outer = databaseOf(db) as Database<TransactionOf<TDb>>
  let passed: { readonly result: T } | null = null
  try {
    await outer.begin(async (open) => {
      passed = { result: await test(inside(outer, open), open.tx) }
      throw new RolledBack()
    })
  } catch (error) {
    if (!(error instanceof RolledBack)) throw error
  }
  return passed!.result
}

class RolledBack extends Error {}

/**
 * The same inside a transaction that the test has begun on `db` by itself, with Drizzle or postgres.js, and that it rolls back
 * by itself.
 */
export function insideTransaction<TDb extends AnyDatabase>(
  db: TDb,
  tx: TransactionOf<TDb>,
): Inside<TDb> {
  const outer = databaseOf(db) as Database<TransactionOf<TDb>>
  return inside(outer, outer.join(tx))
}

function inside<TTx>(outer: Database<TTx>, open: OpenTransaction<TTx>): Database<TTx, TTx> {
  const client = open.tx
  const turns = new Turns()
  return {
    client,
    query: (statement, options) => open.query(statement, options),
    // Without its settings: they belong to the transaction that has begun already. Savepoints that overlapped would undo each
    // other, so units of work that are begun at once run one after another. One inside another does not wait for that one.
    begin: <T>(work: (inner: OpenTransaction<TTx>) => Promise<T>) =>
      openOn(client) ? open.savepoint(work) : turns.take(() => open.savepoint(work)),
    join: (inner) => outer.join(inner),
    watched: (transact) => nestingWith(open.tx as object, transact) as TTx,
    // Savepoints inside it are no transactions of their own.
    mark: () => {},
  }
}

/** How clients name it: Drizzle, Knex and TypeORM, then postgres.js and Kysely, then Prisma. */
const NESTING: readonly PropertyKey[] = ['transaction', 'savepoint', '$transaction']

/** The transaction, whose ways to nest are units of work. */
function nestingWith(tx: object, transact: unknown): object {
  return new Proxy(tx, {
    get(target, property) {
      if (NESTING.includes(property)) return transact
      const value: unknown = Reflect.get(target, property, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
