// Kysely on Postgres: `createOutbox({ db: kyselyDatabase(db) })`. A unit of work is db.transaction().execute(), and its
// callback gets Kysely's own Transaction, which can nest. Kysely does not report whether COMMIT committed or rolled back,
// so no statement may get through that would end the transaction, or fail after the save.
import type { Kysely, Transaction } from 'kysely'
import { noTransaction, OutboxOptionsError } from '../errors.ts'
import type { Database, Marked, OpenTransaction, TransactionSettings } from './driver.ts'
import { isKysely, queryKysely } from './kysely-query.ts'
import { callOn, type Derive, KyselyTransaction, WatchedBuilder } from './kysely-transaction.ts'
import { markTransactions, replaceOnce, unmarked } from './mark-transactions.ts'
import { type ClientTransaction, inSavepoint, openTransaction } from './statement-savepoints.ts'

export type { KyselyTransaction }

/** A database for createOutbox(), from a Kysely on Postgres. The outbox never destroys it. */
export function kyselyDatabase<DB>(db: Kysely<DB>): Database<KyselyTransaction<DB>, Kysely<DB>> {
  if (!isKysely(db) || db.isTransaction) {
    throw new OutboxOptionsError(
      'kyselyDatabase() takes the database itself, from new Kysely({ dialect }), not a transaction',
    )
  }
  return {
    client: db,
    query: (statement) => queryKysely(db, statement),
    begin: (work, settings = {}) => begin(db, settings, work),
    join,
    watched: (transact) => watched(db, transact as Transact<DB>),
    mark: (mark) =>
      replaceOnce(
        db,
        'transaction',
        (transaction) =>
          function (this: object | undefined) {
            return markBuilder(transaction.apply(this ?? db, []) as object, mark)
          },
      ),
  }
}

type Transact<DB> = (
  work: (tx: Transaction<DB>) => unknown,
  settings: TransactionSettings,
) => Promise<unknown>

async function begin<DB, T>(
  db: Kysely<DB>,
  settings: TransactionSettings,
  work: (open: OpenTransaction<KyselyTransaction<DB>>) => Promise<T>,
): Promise<T> {
  const { isolationLevel, accessMode, deferrable } = settings
  let builder = unmarked(db, 'transaction')() as unknown as ReturnType<Kysely<DB>['transaction']>
  if (isolationLevel) builder = builder.setIsolationLevel(isolationLevel)
  if (accessMode) builder = builder.setAccessMode(accessMode)
  return await builder.execute(async (tx) => {
    const session = sessionOf(tx)
    try {
      if (deferrable !== undefined) {
        const text = `set transaction ${deferrable ? 'deferrable' : 'not deferrable'}`
        await session.query({ text, values: [] })
      }
      return await work(openTransaction(session))
    } finally {
      session.isOver = true
    }
  })
}

function sessionOf<DB>(tx: Transaction<DB>): ClientTransaction<KyselyTransaction<DB>> {
  return {
    query: (statement) => queryKysely(tx, statement),
    guard: (watch) => new KyselyTransaction(tx, watch),
    isOver: false,
  }
}

// The opener of the transaction knows when it is over. One of Kysely's own has no savepoint(), and one of ours refuses
// savepoints as statements.
function join<DB>(tx: KyselyTransaction<DB>): OpenTransaction<KyselyTransaction<DB>> {
  if (!isKysely(tx) || !tx.isTransaction) throw noTransaction()
  const session = sessionOf(tx)
  return {
    tx,
    query: (statement) => session.query(statement),
    guarded: (watch) => new KyselyTransaction(tx, watch),
    savepoint: (work) =>
      tx instanceof KyselyTransaction
        ? tx.savepoint((inner) => work(join(inner)))
        : inSavepoint(session, () => work(join(tx))),
  }
}

/** Methods that return the same database with something changed, which its transactions then have too. */
const DERIVING = new Set([
  'withPlugin',
  'withoutPlugins',
  'withSchema',
  'withTables',
  '$extendTables',
  '$omitTables',
  '$pickTables',
])

function startTransaction(): never {
  throw new OutboxOptionsError(
    'a transaction of startTransaction() cannot be watched on outbox.db, because no callback encloses it; use transaction().execute(), or begin it on your own Kysely and call emitIn(tx, event)',
  )
}

function watched<DB>(db: Kysely<DB>, transact: Transact<DB>, derive: Derive = (one) => one) {
  const transaction = () =>
    new WatchedBuilder<DB>((work, settings) =>
      transact(typeof work === 'function' ? (tx) => work(derive(tx)) : work, settings),
    )
  return new Proxy(db, {
    get(target, property): unknown {
      if (property === 'transaction') return transaction
      if (property === 'startTransaction') return startTransaction
      const value: unknown = Reflect.get(target, property, target)
      if (typeof value !== 'function') return value
      if (typeof property === 'symbol' || !DERIVING.has(property))
        return value.bind(target) as unknown
      return (...given: unknown[]) => {
        const again: Derive = (from) => callOn(derive(from), property, given)
        return watched(callOn(target, property, given), transact, again)
      }
    },
  })
}

/** Its setters return further builders. */
function markBuilder(builder: object, mark: () => Marked): object {
  markTransactions(builder, 'execute', mark)
  for (const setter of ['setIsolationLevel', 'setAccessMode']) {
    const set = Reflect.get(builder, setter) as (value: unknown) => object
    Reflect.set(builder, setter, (value: unknown) => markBuilder(set.call(builder, value), mark))
  }
  return builder
}
