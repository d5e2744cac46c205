// postgres.js without Drizzle: `createOutbox({ db: postgresJs(sql) })`. A unit of work is sql.begin(), and its callback
// gets postgres.js's own TransactionSql. Two things are prevented: that ROLLBACK on a lost connection throws where no
// caller can catch it, and that queries are sent after the unit of work has ended.
import type { Sql, TransactionSql } from 'postgres'
import { noTransaction, OutboxOptionsError } from '../errors.ts'
import type { Database, OpenTransaction, TransactionWatch } from './driver.ts'
import { deadEnd } from './dead-end.ts'
import { type Life, noteLoss, OVER, runInClient } from './lost-connection.ts'
import { markTransactions, unmarked } from './mark-transactions.ts'
import { keepArrayTypes } from './postgres-js-types.ts'
import { buildPostgresJs, queryPostgresJs, readPostgresJs } from './postgres-js-query.ts'
import { refuseRenaming } from './postgres-js-transform.ts'
import { controlError, parseSettings, refuseControl, settingsText } from './transaction-text.ts'

/** A database for createOutbox(), from the client that postgres() returned. The outbox never closes it. */
export function postgresJs<TTypes extends Types>(
  sql: Sql<TTypes>,
): Database<TransactionSql<TTypes>, Sql<TTypes>> {
  if (typeof sql !== 'function' || typeof sql.begin !== 'function') {
    throw new OutboxOptionsError(
      'postgresJs() takes the client itself, from postgres(url), not a transaction or a reserved connection',
    )
  }
  refuseRenaming('postgresJs()', sql)
  return {
    client: sql,
    query: async (statement, options) => {
      const rows = await queryPostgresJs(sql, statement, options)
      keepArrayTypes(sql)
      return rows
    },
    begin: (work, settings) => begin(sql, settingsText(settings), work),
    join,
    watched: (transact) => {
      const watchedBegin = async (...given: unknown[]) => {
        const work = given.pop() as (tx: unknown) => unknown
        return await transact(work, parseSettings(given.join(' ')))
      }
      return new Proxy(sql, {
        get: (target, property) =>
          property === 'begin' ? watchedBegin : (Reflect.get(target, property, target) as unknown),
      })
    },
    mark: (mark) => markTransactions(sql, 'begin', mark),
  }
}

type Types = Record<string, unknown>
type Open<TTypes extends Types> = OpenTransaction<TransactionSql<TTypes>>

async function begin<TTypes extends Types, T>(
  sql: Sql<TTypes>,
  settings: string,
  work: (open: Open<TTypes>) => Promise<T>,
): Promise<T> {
  const life: Life = { end: null }
  try {
    return await runInClient(
      life,
      (callback: (tx: TransactionSql<TTypes>) => Promise<T>) =>
        unmarked(sql, 'begin')(settings, callback),
      (tx) => work(openTransaction(tx, life)),
    )
  } catch (error) {
    life.end = { error }
    throw error
  } finally {
    life.end ??= OVER
  }
}

function openTransaction<TTypes extends Types>(
  tx: TransactionSql<TTypes>,
  life: Life,
): Open<TTypes> {
  const nest = async <T>(work: (open: Open<TTypes>) => Promise<T>) => {
    checkAlive(life)
    return await runInClient(
      life,
      (callback: (inner: TransactionSql<TTypes>) => Promise<T>) => tx.savepoint(callback),
      (inner) => work(openTransaction(inner, life)),
    )
  }
  const anyUse = {
    use: () => {},
    savepoint: (work: (inner: TransactionSql<TTypes>) => unknown) =>
      nest(async (open) => work(open.tx)),
  }
  return {
    tx: guard(tx, life, anyUse),
    savepoint: nest,
    query: (statement, options) =>
      readPostgresJs(guardQuery(buildPostgresJs(tx, statement, options), life, () => {})),
    guarded: (watch) => guard(tx, life, watch),
  }
}

// The opener of the transaction watches over its connection.
function join<TTypes extends Types>(tx: TransactionSql<TTypes>): Open<TTypes> {
  if (typeof tx?.savepoint !== 'function') throw noTransaction()
  return {
    tx,
    query: (statement, options) => queryPostgresJs(tx, statement, options),
    savepoint: async (work) => (await tx.savepoint((inner) => work(join(inner)))) as never,
    guarded: (watch) => guard(tx, { end: null }, watch),
  }
}

function checkAlive({ end }: Life): void {
  if (end) throw end.error
}

function guard<TTypes extends Types>(
  tx: TransactionSql<TTypes>,
  life: Life,
  { use, savepoint }: TransactionWatch<TransactionSql<TTypes>>,
): TransactionSql<TTypes> {
  const make = (target: Callable, given: unknown[], text: string | null) => {
    try {
      use()
      checkAlive(life)
      if (text !== null) refuseControl(text)
    } catch (error) {
      return deadEnd(error)
    }
    return guardQuery(Reflect.apply(target, tx, given), life, use)
  }
  return new Proxy(tx, {
    apply: (target, _, given: unknown[]) => {
      const [first] = given
      return make(target as Callable, given, isTemplate(first) ? first.join('$1') : null)
    },
    get(target, property) {
      // The optional first argument, the savepoint's name, is only for logs.
      if (property === 'savepoint') return (...given: unknown[]) => savepoint(given.at(-1) as never)
      if (property === 'prepare') return () => deadEnd(controlError('PREPARE TRANSACTION'))
      const value: unknown = Reflect.get(target, property, target)
      if (property === 'file') return (...given: unknown[]) => make(value as Callable, given, null)
      if (property !== 'unsafe') return value
      return (...given: unknown[]) => make(value as Callable, given, String(given[0]))
    },
  })
}

type Callable = (...given: unknown[]) => unknown

function isTemplate(value: unknown): value is readonly string[] {
  return Array.isArray(value) && 'raw' in value
}

interface Query {
  handler: ((query: Query) => void) & { debug?: unknown }
  reject: (error: unknown) => void
}

// postgres.js sends a query when it is first awaited, which is too late if the transaction is over by then. A query
// that fails with the connection learns of the loss first, and code that catches its error may send the next one before
// sql.begin() rejects. What is not a query, such as a name or a list of values, is returned unchanged.
function guardQuery<T>(made: T, life: Life, use: () => void): T {
  const query = made as Query
  if (!(made instanceof Promise) || typeof query.handler !== 'function') return made
  const { handler: send, reject } = query
  const sendIfOpen = (held: Query) => {
    try {
      use()
      checkAlive(life)
      send(held)
    } catch (error) {
      held.reject(error)
    }
  }
  query.handler = Object.assign(sendIfOpen, { debug: send.debug })
  query.reject = (error) => {
    noteLoss(life, error)
    reject(error)
  }
  return made
}
