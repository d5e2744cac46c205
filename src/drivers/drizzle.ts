// Drizzle over any Postgres driver. It has no hook for savepoints or for the end of a transaction, so the callback gets
// a proxy of the transaction, with a session of its own. Drizzle also does not report whether COMMIT committed or rolled
// back, so no statement may get through that would end the transaction, or fail after the save.
import { types } from 'node:util'
import { noTransaction } from '../errors.ts'
import type { Statement } from './sql.ts'
import { deadEnd } from './dead-end.ts'
import type {
  Database,
  DrizzleDatabase,
  OpenTransaction,
  QueryOptions,
  TransactionWatch,
} from './driver.ts'
import { onOwnConnection } from './drizzle-connection.ts'
import { type Life, noteLoss, OVER, runInClient } from './lost-connection.ts'
import { keepArrayTypes } from './postgres-js-types.ts'
import { markTransactions, unmarked } from './mark-transactions.ts'
import { refuseControl } from './transaction-text.ts'

/** A Drizzle transaction: runs statements and nests. */
interface DrizzleTransaction extends Pick<DrizzleDatabase, 'execute'> {
  transaction<T>(work: (tx: DrizzleTransaction) => Promise<T>): Promise<T>
}

export function drizzleDatabase<TDb extends DrizzleDatabase>(
  db: TDb,
): Database<DrizzleTransaction, TDb> {
  const { $client } = db as { $client?: unknown }
  const onConnection = onOwnConnection(db, sessionOf(db))
  return {
    client: $client ?? db,
    query: async (statement, options) => {
      const rows = await execute(db, statement, options)
      keepArrayTypes($client)
      return rows
    },
    begin: <T>(work: (open: OpenTransaction<DrizzleTransaction>) => Promise<T>, settings = {}) => {
      // Drizzle turns an empty settings object into an invalid statement.
      const config = Object.keys(settings).length > 0 ? settings : undefined
      // The work ends before COMMIT, the connection at any time.
      const connection: Life = { end: null }
      const life: Life = { end: null }
      const run = async (tx: DrizzleTransaction) => {
        try {
          return await work(openTransaction(tx, life))
        } finally {
          life.end ??= OVER
        }
      }
      const begin = (callback: typeof run) => {
        const transaction = onConnection((own) =>
          unmarked(db, 'transaction', own)(callback, config),
        )
        // If it fails while the work goes on, its connection is gone.
        transaction.catch((error: unknown) => (life.end ??= { error }))
        return transaction
      }
      return runInClient(connection, begin, run)
    },
    // The opener of the transaction knows when it is over.
    join(tx) {
      // A database itself has no rollback(), and would begin a separate transaction.
      if (typeof (tx as { rollback?: unknown } | null)?.rollback !== 'function')
        throw noTransaction()
      return openTransaction(tx, { end: null })
    },
    watched: (transact) =>
      new Proxy(db, {
        get(target, property) {
          if (property === 'transaction') return transact
          const value: unknown = Reflect.get(target, property, target)
          // Its own properties are no methods: $client, for one, is a function with properties of its own.
          const isMethod = typeof value === 'function' && !Object.hasOwn(target, property)
          return isMethod ? (value.bind(target) as unknown) : value
        },
      }),
    mark(mark) {
      markTransactions(db, 'transaction', mark)
      // postgres.js's own way, on the client under Drizzle.
      if (typeof ($client as { begin?: unknown } | undefined)?.begin === 'function')
        markTransactions($client as object, 'begin', mark)
    },
  }
}

function openTransaction(tx: DrizzleTransaction, life: Life): OpenTransaction<DrizzleTransaction> {
  return {
    tx,
    query: async (statement, options) => {
      // postgres.js throws past every caller if a long statement, such as the save, goes to a connection that has closed.
      if (life.end) throw life.end.error
      return await execute(tx, statement, options)
    },
    savepoint: (work) => nest(tx, life, work),
    guarded: (watch) => guard(tx, life, watch),
  }
}

// Drizzle ends a savepoint on the connection where it began, under a name that all transactions share. If the outer
// transaction is over, that may undo the work of another one on that connection. So the callback of a nested
// transaction that was not awaited never settles for Drizzle, and we settle the caller's promise ourselves.
function nest<T>(
  tx: DrizzleTransaction,
  life: Life,
  work: (inner: OpenTransaction<DrizzleTransaction>) => Promise<T>,
): Promise<T> {
  return runInClient(
    life,
    (callback: (inner: DrizzleTransaction) => Promise<T>) => tx.transaction(callback),
    (inner) => work(openTransaction(inner, life)),
  )
}

// The builders that a transaction makes run on its session, perhaps long after they were made. So the callback's
// transaction has a session that checks each query when it runs.
function guard(
  tx: DrizzleTransaction,
  life: Life,
  { use, savepoint }: TransactionWatch<DrizzleTransaction>,
) {
  const check = () => {
    use()
    if (life.end) throw life.end.error
  }
  const session = guardSession(sessionOf(tx), { check, failed: (error) => noteLoss(life, error) })
  const own = copyWith(tx, { session, _: { ...(tx as { _?: object })._, session } })
  return new Proxy(own, {
    get(target, property) {
      if (property === 'transaction') return savepoint
      const value: unknown = Reflect.get(target, property, target)
      // Relational queries were made with the session that Drizzle knows.
      if (property === 'query')
        return mapOnRead(value, (builder) =>
          Object.create(builder, { session: { value: session } }),
        )
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

interface Session {
  readonly client?: unknown
  prepareQuery(query: { sql: string }, ...rest: unknown[]): object
}

export function sessionOf(db: object): Session | undefined {
  return (db as { session?: Session }).session ?? (db as { _?: { session?: Session } })._?.session
}

/** How each query is handled. */
interface QueryWatch {
  /** Throws if it may not run. */
  readonly check: () => void
  readonly failed: (error: unknown) => void
}

function guardSession(session: Session | undefined, watch: QueryWatch): Session | undefined {
  if (typeof session?.prepareQuery !== 'function') return session
  const prepareQuery: Session['prepareQuery'] = (query, ...rest) => {
    try {
      refuseControl(query.sql)
    } catch (error) {
      return deadEnd(error) as object
    }
    return guardPrepared(session.prepareQuery(query, ...rest), watch)
  }
  return copyWith(session, { prepareQuery })
}

// Each transaction is a fresh object. To inherit from it takes V8 3.6 us, to copy it 0.2. A copy of a proxy, such as one that
// traces queries, would lose what that does.
function copyWith<T extends object>(one: T, changes: object): T {
  if (types.isProxy(one)) {
    return Object.create(one, Object.getOwnPropertyDescriptors(changes)) as T
  }
  return Object.assign(Object.create(Object.getPrototypeOf(one) as object), one, changes) as T
}

/** A prepared query in Drizzle's sense: checked each time it is executed. */
function guardPrepared(prepared: object, watch: QueryWatch): object {
  return new Proxy(prepared, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target)
      if (typeof value !== 'function') return value
      const runs = property === 'execute' || property === 'all'
      return (...given: unknown[]) => {
        if (runs) {
          try {
            watch.check()
          } catch (error) {
            return deadEnd(error)
          }
        }
        const result: unknown = Reflect.apply(value, target, given)
        if (runs && result instanceof Promise) {
          result.catch((error: unknown) => watch.failed(isQueryError(error) ? error.cause : error))
        }
        // setToken() and the like return the query itself.
        return result === target ? guardPrepared(target, watch) : result
      }
    },
  })
}

function mapOnRead(values: unknown, map: (value: object) => unknown): unknown {
  if (typeof values !== 'object' || values === null) return values
  return new Proxy(values, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target)
      return typeof value === 'object' && value !== null ? map(value) : value
    },
  })
}

export async function execute(
  db: Pick<DrizzleDatabase, 'execute'>,
  { text, values }: Statement,
  { prepare = false }: QueryOptions = {},
) {
  const client = prepare ? preparingClient(db) : null
  try {
    const result = await (client
      ? client.unsafe(text, [...values], { prepare })
      : db.execute(asQuery({ sql: text, params: [...values] })))
    // postgres-js returns the rows, node-postgres and PGlite an object around them.
    return (Array.isArray(result) ? result : (result as { rows: unknown[] }).rows) as unknown[]
  } catch (thrown) {
    throw isQueryError(thrown) ? thrown.cause : thrown
  }
}

// Drizzle only calls getSQL() on a query and toQuery() on the result, so a plain object will do. Importing Drizzle's
// template instead would make bundlers require Drizzle where it is not used.
function asQuery(built: { sql: string; params: unknown[] }) {
  return { getSQL: () => ({ toQuery: () => built }) }
}

interface PreparingClient {
  unsafe(text: string, values: unknown[], options: { prepare: boolean }): Promise<unknown>
}

// Of the clients under Drizzle, only postgres.js knows whether its connections keep prepared statements: it prepares
// nothing if it was created with `prepare: false`. We call it directly, as Drizzle's own way changes with its versions.
function preparingClient(db: object): PreparingClient | null {
  const client = sessionOf(db)?.client as Partial<PreparingClient> | undefined
  return typeof client?.unsafe === 'function' ? (client as PreparingClient) : null
}

/** Whether this is Drizzle's wrapper around the driver's error. Its message prints every parameter. */
function isQueryError(thrown: unknown): thrown is Error {
  return thrown instanceof Error && 'query' in thrown && 'params' in thrown && 'cause' in thrown
}
