// Drizzle over any Postgres driver. It has no hook for savepoints or for the end of a transaction, so the callback gets
// a proxy of the transaction, with a session of its own. Drizzle also does not say whether COMMIT committed or rolled
// back, so no statement may get through that would end the transaction, or fail behind the save.
import type { EventEmitter } from 'node:events'
import { noTransaction, overError } from '../errors.ts'
import type { Statement } from './sql.ts'
import { deadEnd } from './dead-end.ts'
import type {
  Database,
  DrizzleDatabase,
  OpenTransaction,
  QueryOptions,
  TransactionWatch,
} from './driver.ts'
import { type Life, noteLoss, runInClient } from './lost-connection.ts'
import { refuseControl } from './transaction-text.ts'

/** A Drizzle transaction: runs statements and nests. */
interface DrizzleTransaction extends Pick<DrizzleDatabase, 'execute'> {
  transaction<T>(work: (tx: DrizzleTransaction) => Promise<T>): Promise<T>
}

export function drizzleDatabase(db: DrizzleDatabase): Database<DrizzleTransaction> {
  return {
    client: (db as { $client?: unknown }).$client ?? db,
    query: (statement, options) => execute(db, statement, options),
    begin: async <T>(
      work: (open: OpenTransaction<DrizzleTransaction>) => Promise<T>,
      settings = {},
    ) => {
      // Drizzle turns an empty settings object into an invalid statement.
      const config = Object.keys(settings).length > 0 ? settings : undefined
      // The work ends before COMMIT, the connection at any time.
      const connection: Life = { end: null }
      const life: Life = { end: null }
      const listener = new ErrorListener()
      const run = async (tx: DrizzleTransaction) => {
        listener.listenTo(sessionOf(tx)?.client)
        try {
          return await work(openTransaction(tx, life))
        } finally {
          life.end ??= { error: overError('the transaction was used') }
        }
      }
      const begin = (callback: typeof run) => {
        const transaction = db.transaction(callback, config)
        // If it fails while the work goes on, its connection is gone.
        transaction.catch((error: unknown) => (life.end ??= { error }))
        return transaction
      }
      return await runInClient(connection, begin, run).finally(() => listener.stop())
    },
    // The opener of the transaction knows when it is over.
    join(tx) {
      // A database itself has no rollback(), and would begin a separate transaction.
      if (typeof (tx as { rollback?: unknown } | null)?.rollback !== 'function')
        throw noTransaction()
      return openTransaction(tx, { end: null })
    },
  }
}

function openTransaction(tx: DrizzleTransaction, life: Life): OpenTransaction<DrizzleTransaction> {
  return {
    tx,
    query: (statement, options) => execute(tx, statement, options),
    savepoint: (work) => nest(tx, life, work),
    guarded: (watch) => guard(tx, life, watch),
  }
}

// A connection of node-postgres that dies in a transaction emits 'error' on its client and nowhere else. Without a
// listener, that ends the process.
class ErrorListener {
  #client: EventEmitter | null = null
  readonly #ignore = () => {}

  listenTo(client: unknown): void {
    const { on, off } = (client ?? {}) as Partial<EventEmitter>
    if (typeof on !== 'function' || typeof off !== 'function') return
    this.#client = client as EventEmitter
    this.#client.on('error', this.#ignore)
  }

  stop(): void {
    this.#client?.off('error', this.#ignore)
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
  const onSession = { session: { value: session } }
  const own = Object.create(tx, {
    ...onSession,
    _: { value: { ...(tx as { _?: object })._, session } },
  }) as DrizzleTransaction
  return new Proxy(own, {
    get(target, property) {
      if (property === 'transaction') return savepoint
      const value: unknown = Reflect.get(target, property, target)
      // Relational queries were made with the session that Drizzle knows.
      if (property === 'query')
        return mapOnRead(value, (builder) => Object.create(builder, onSession))
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

interface Session {
  readonly client?: unknown
  prepareQuery(query: { sql: string }, ...rest: unknown[]): object
}

function sessionOf(db: object): Session | undefined {
  return (db as { session?: Session }).session ?? (db as { _?: { session?: Session } })._?.session
}

/** What becomes of each query. */
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
  return Object.create(session, { prepareQuery: { value: prepareQuery } }) as Session
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

async function execute(
  db: Pick<DrizzleDatabase, 'execute'>,
  { text, values }: Statement,
  { prepare = false }: QueryOptions = {},
) {
  const built = { sql: text, params: [...values] }
  const session = prepare ? preparingSession(db) : null
  try {
    const result = await (session
      ? session.prepareQuery(built, undefined, 'aftercommit', false).execute()
      : db.execute(asQuery(built)))
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

/** The session as Drizzle's query builders use it. It prepares a query that has a name. */
interface PreparingSession {
  prepareQuery(
    query: { sql: string; params: unknown[] },
    fields: undefined,
    name: string,
    inArrays: false,
  ): { execute(): Promise<unknown> }
}

// Of Drizzle's drivers, only postgres.js knows whether its connections keep prepared statements: it prepares nothing if
// it was created with `prepare: false`.
function preparingSession(db: object): PreparingSession | null {
  const session: unknown = sessionOf(db)
  const { client, prepareQuery } = (session ?? {}) as {
    client?: { unsafe?: unknown }
    prepareQuery?: unknown
  }
  const knows = typeof client?.unsafe === 'function' && typeof prepareQuery === 'function'
  return knows ? (session as PreparingSession) : null
}

/** Whether this is Drizzle's wrapper around the driver's error. Its message prints every parameter. */
function isQueryError(thrown: unknown): thrown is Error {
  return thrown instanceof Error && 'query' in thrown && 'params' in thrown && 'cause' in thrown
}
