// A database inside one transaction, for tests that roll back what they did. Each unit of work is a savepoint, and every
// statement of the outbox runs in that transaction too, so it sees what was "committed" there.
import { databaseOf } from '../drivers/database-of.ts'
import type {
  AnyDatabase,
  Database,
  HandleOf,
  OpenTransaction,
  TransactionOf,
} from '../drivers/driver.ts'
import { isKysely } from '../drivers/kysely-query.ts'
import { Turns } from '../runtime/turns.ts'
import { openOn } from '../unit-of-work/surroundings.ts'

/**
 * A database for createOutbox() inside a transaction. `outbox.db` is that transaction, on which code begins as on the
 * application's own handle.
 */
type Inside<TDb extends AnyDatabase> = Database<TransactionOf<TDb>, HandleOf<TDb>>

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
      passed = { result: await test(inside<TDb>(outer, open), open.tx) }
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
  return inside<TDb>(outer, outer.join(tx))
}

function inside<TDb extends AnyDatabase>(
  outer: Database<TransactionOf<TDb>>,
  open: OpenTransaction<TransactionOf<TDb>>,
): Inside<TDb> {
  const client = open.tx
  const turns = new Turns()
  return {
    client,
    // As any statement of the transaction: only a save waits for operations in flight, and this may come from inside one.
    query: (statement, options) => outer.join(client).query(statement, options),
    // Without its settings: they belong to the transaction that has begun already. Savepoints that overlapped would undo each
    // other, so units of work that are begun at once run one after another. One inside another does not wait for that one.
    begin: <T>(work: (inner: OpenTransaction<TransactionOf<TDb>>) => Promise<T>) =>
      openOn(client) ? open.savepoint(work) : turns.take(() => open.savepoint(work)),
    join: (inner) => outer.join(inner),
    watched: (transact) => nestingWith(open.tx, transact) as HandleOf<TDb>,
    // Savepoints inside it are no transactions of their own.
    mark: () => {},
  }
}

/** How clients name what nests: Drizzle, Knex and TypeORM, then postgres.js and Kysely, then Prisma. */
const NESTING: readonly PropertyKey[] = ['transaction', 'savepoint', '$transaction']

type Nest = (...given: unknown[]) => unknown

/** The transaction, on which code nests, or begins as it does on the application's own handle: both are units of work. */
function nestingWith(tx: object, transact: (work: never) => unknown): object {
  // Settings stand before or after the work. They belong to the transaction that has begun already.
  const begin: Nest = (...given) =>
    transact((given.find((one) => typeof one === 'function') ?? given[0]) as never)
  const builder = { setIsolationLevel: () => builder, setAccessMode: () => builder, execute: begin }
  return new Proxy(tx, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target)
      if (property === 'transaction' && isKysely(tx)) return () => builder
      // postgres.js begins on its handle by a method that its transactions do not have.
      if (property === 'begin' && value === undefined) return begin
      if (NESTING.includes(property)) return orList(begin, target, value)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

/** Prisma takes a list of queries too, which has no place for events. */
function orList(begin: Nest, target: object, own: unknown): Nest {
  return (...given) =>
    Array.isArray(given[0]) ? Reflect.apply(own as Nest, target, given) : begin(...given)
}
