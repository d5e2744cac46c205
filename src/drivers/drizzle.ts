// Drizzle over any Postgres driver. It has no hook for savepoints or for the end of a transaction, so the
// transaction that the callback gets is a proxy; and it does not tell how COMMIT was answered.
import { noTransaction, overError } from '../errors.ts'
import type { SQL } from '../store/sql.ts'
import type {
  Database,
  DrizzleDatabase,
  OpenTransaction,
  QueryOptions,
  TransactionWatch,
} from './driver.ts'

/** A Drizzle transaction: it runs statements and nests. */
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
      // Drizzle makes an empty object of settings into a broken statement.
      const config = Object.keys(settings).length > 0 ? settings : undefined
      const life: Life = { isOver: false }
      const run = async (tx: DrizzleTransaction) => {
        try {
          return await work(openTransaction(tx, life))
        } finally {
          life.isOver = true
        }
      }
      return (await db.transaction(run, config)) as T
    },
    // Who began it knows when it is over.
    join(tx) {
      // A database itself has no rollback(), and would begin a transaction of its own.
      if (typeof (tx as { rollback?: unknown } | null)?.rollback !== 'function')
        throw noTransaction()
      return openTransaction(tx, { isOver: false })
    },
  }
}

type Life = { isOver: boolean }

function openTransaction(tx: DrizzleTransaction, life: Life): OpenTransaction<DrizzleTransaction> {
  return {
    tx,
    query: (statement, options) => execute(tx, statement, options),
    savepoint: (work) => nest(tx, life, work),
    guarded: (watch) => guard(tx, watch),
  }
}

// Drizzle ends a savepoint on the connection that it began on, under a name that all transactions have in common.
// When the transaction is over, that may undo what somebody else does there. So the callback of one that nobody
// awaited never settles for Drizzle, and whoever waits is told by us.
function nest<T>(
  tx: DrizzleTransaction,
  life: Life,
  work: (inner: OpenTransaction<DrizzleTransaction>) => Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const nested = tx.transaction(async (inner) => {
      try {
        const result = await work(openTransaction(inner, life))
        if (!life.isOver) return result
        reject(overError('a nested transaction ended'))
      } catch (error) {
        if (!life.isOver) throw error
        reject(error)
      }
      return await new Promise<never>(() => {})
    })
    nested.then(resolve, reject)
  })
}

function guard(tx: DrizzleTransaction, { use, savepoint }: TransactionWatch<DrizzleTransaction>) {
  return new Proxy(tx, {
    get(target, property) {
      // Asked for by whoever awaits it, which is no use of it.
      if (property !== 'then') use()
      if (property === 'transaction') return savepoint
      const value: unknown = Reflect.get(target, property, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

async function execute(
  db: Pick<DrizzleDatabase, 'execute'>,
  { text, values }: SQL,
  { prepare = false }: QueryOptions = {},
) {
  const built = { sql: text, params: [...values] }
  const session = prepare ? preparingSession(db) : null
  try {
    const result = await (session
      ? session.prepareQuery(built, undefined, 'aftercommit', false).execute()
      : db.execute(asQuery(built)))
    // postgres-js answers with the rows, node-postgres and PGlite with an object around them.
    return (Array.isArray(result) ? result : (result as { rows: unknown[] }).rows) as unknown[]
  } catch (thrown) {
    throw isQueryError(thrown) ? thrown.cause : thrown
  }
}

// Drizzle asks a query for its SQL and that for its text and parameters, and looks no closer: so there is no need
// to load Drizzle for its template, which would make bundlers ask for it where it is not in use.
function asQuery(built: { sql: string; params: unknown[] }) {
  return { getSQL: () => ({ toQuery: () => built }) }
}

/** As its query builders use it. A query with a name is one to prepare. */
interface PreparingSession {
  prepareQuery(
    query: { sql: string; params: unknown[] },
    fields: undefined,
    name: string,
    inArrays: false,
  ): { execute(): Promise<unknown> }
}

// Of Drizzle's drivers only postgres.js knows whether its connections keep what is prepared on them: it prepares
// nothing if it was made with `prepare: false`.
function preparingSession(db: object): PreparingSession | null {
  const { session } = (db as { _?: { session?: unknown } })._ ?? {}
  const { client, prepareQuery } = (session ?? {}) as {
    client?: { unsafe?: unknown }
    prepareQuery?: unknown
  }
  const knows = typeof client?.unsafe === 'function' && typeof prepareQuery === 'function'
  return knows ? (session as PreparingSession) : null
}

/** Drizzle's wrapper around the driver's error. Its message prints every parameter. */
function isQueryError(thrown: unknown): thrown is Error {
  return thrown instanceof Error && 'query' in thrown && 'params' in thrown && 'cause' in thrown
}
