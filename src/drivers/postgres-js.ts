// postgres.js without Drizzle: `createOutbox({ db: postgresJs(sql) })`. A unit of work is sql.begin(), and its
// callback gets postgres.js's own TransactionSql. Two things are kept from it: a connection that is gone, on
// which its ROLLBACK throws past everybody, and queries that are sent when the unit of work is over.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Sql, TransactionSql } from 'postgres'
import { noTransaction, OutboxOptionsError, overError } from '../errors.ts'
import type { SQL } from '../store/sql.ts'
import type { Database, OpenTransaction, QueryOptions, TransactionWatch } from './driver.ts'
import { refuseRenaming } from './postgres-js-transform.ts'
import { controlError, refuseControl, settingsText } from './transaction-text.ts'

/** A database for createOutbox(), from the client that postgres() made. It is never closed by the outbox. */
export function postgresJs<TTypes extends Types>(
  sql: Sql<TTypes>,
): Database<TransactionSql<TTypes>> {
  if (typeof sql !== 'function' || typeof sql.begin !== 'function') {
    throw new OutboxOptionsError(
      'postgresJs() takes the client itself, from postgres(url): not a transaction or a reserved connection of it',
    )
  }
  refuseRenaming('postgresJs()', sql)
  return {
    client: sql,
    query: (statement, options) => read(build(sql, statement, options)),
    begin: (work, settings) => begin(sql, settingsText(settings), work),
    join,
  }
}

type Types = Record<string, unknown>
type Open<TTypes extends Types> = OpenTransaction<TransactionSql<TTypes>>

/** Set when the transaction is over, whatever ended it. */
type End = { error: unknown } | null
type Life = { end: End }

async function begin<TTypes extends Types, T>(
  sql: Sql<TTypes>,
  settings: string,
  work: (open: Open<TTypes>) => Promise<T>,
): Promise<T> {
  const life: Life = { end: null }
  try {
    return await runScope(
      life,
      (scope: (tx: TransactionSql<TTypes>) => Promise<T>) => sql.begin(settings, scope),
      (tx) => work(openTransaction(tx, life)),
    )
  } catch (error) {
    life.end = { error }
    throw error
  } finally {
    life.end ??= { error: overError('the transaction was used') }
  }
}

// When a connection dies, sql.begin() rejects at once, but goes on to send ROLLBACK or COMMIT when its callback
// settles. There is nothing left to write to, and what that throws ends the process (porsager/postgres#1208). So
// the callback of a transaction that is lost never settles for postgres.js, and whoever waits is told by us. A failure
// waits for one turn of the event loop, as the query that was under way hears of the end before sql.begin() does.
function runScope<TTx, T>(
  life: Life,
  open: (scope: (tx: TTx) => Promise<T>) => Promise<unknown>,
  work: (tx: TTx) => Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let thrown: unknown
    const opened = open(async (tx) => {
      try {
        const result = await work(tx)
        if (!life.end) return result
        reject(life.end.error)
      } catch (error) {
        thrown = error
        await nextTurn()
        if (!life.end) throw error
        reject(error)
      }
      return await new Promise<never>(() => {})
    })
    opened.then(resolve as (result: unknown) => void, (error) => {
      // What the work threw may be about any connection, but not about this one.
      if (error !== thrown) noteLoss(life, error)
      reject(error)
    })
  })
}

function openTransaction<TTypes extends Types>(
  tx: TransactionSql<TTypes>,
  life: Life,
): Open<TTypes> {
  const nest = async <T>(work: (open: Open<TTypes>) => Promise<T>) => {
    checkAlive(life)
    return await runScope(
      life,
      (scope: (inner: TransactionSql<TTypes>) => Promise<T>) => tx.savepoint(scope),
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
    query: (statement, options) => read(hold(build(tx, statement, options), life, () => {})),
    guarded: (watch) => guard(tx, life, watch),
  }
}

// Whoever began it watches over its connection.
function join<TTypes extends Types>(tx: TransactionSql<TTypes>): Open<TTypes> {
  if (typeof tx?.savepoint !== 'function') throw noTransaction()
  return {
    tx,
    query: (statement, options) => read(build(tx, statement, options)),
    savepoint: async (work) => (await tx.savepoint((inner) => work(join(inner)))) as never,
    guarded: (watch) => guard(tx, { end: null }, watch),
  }
}

function checkAlive({ end }: Life): void {
  if (end) throw end.error
}

/** Errors of the connection have a number; those of Postgres say how severe they are. */
function noteLoss(life: Life, error: unknown): void {
  const { errno, severity } = (error ?? {}) as { errno?: unknown; severity?: unknown }
  if (errno !== undefined || severity === 'FATAL' || severity === 'PANIC') life.end ??= { error }
}

function guard<TTypes extends Types>(
  tx: TransactionSql<TTypes>,
  life: Life,
  { use, savepoint }: TransactionWatch<TransactionSql<TTypes>>,
): TransactionSql<TTypes> {
  const make = (target: Callable, given: unknown[], text: string | null) => {
    use()
    checkAlive(life)
    if (text !== null) refuseControl(text)
    return hold(Reflect.apply(target, tx, given), life, use)
  }
  return new Proxy(tx, {
    apply: (target, _, given: unknown[]) => {
      const [first] = given
      return make(target as Callable, given, isTemplate(first) ? first.join('$1') : null)
    },
    get(target, property) {
      // Asked for by whoever awaits it, which is no use of it.
      if (property !== 'then') use()
      // The name of a savepoint, which may come first, is for logs alone.
      if (property === 'savepoint') return (...given: unknown[]) => savepoint(given.at(-1) as never)
      if (property === 'prepare') throw controlError('PREPARE TRANSACTION')
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

// A query of postgres.js is sent when it is first awaited, which may be long after it was made: too late if the
// transaction is over by then. One that fails with the connection is the first to know, and whoever caught that may
// send the next before sql.begin() has said a word. What is no query, such as a name or a list of values, is handed on.
function hold<T>(made: T, life: Life, use: () => void): T {
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

function build<TTypes extends Types>(
  sql: Pick<TransactionSql<TTypes>, 'unsafe'>,
  { text, values }: SQL,
  { prepare = false }: QueryOptions = {},
) {
  // postgres.js prepares nothing if it was made with `prepare: false`, as it has to be for a pooler that hands
  // connections round. Raw: neither parsers nor transforms of the client, which are the user's or Drizzle's, touch our rows.
  return sql.unsafe(text, values as never[], { prepare }).raw()
}

async function read(query: ReturnType<typeof build>): Promise<unknown[]> {
  const result = await query
  const names = (result.columns as readonly { name: string }[] | undefined)?.map(({ name }) => name)
  return (result as unknown as readonly (Buffer | null)[][]).map((row) => {
    return Object.fromEntries(row.map((value, n) => [names![n], value?.toString() ?? null]))
  })
}
