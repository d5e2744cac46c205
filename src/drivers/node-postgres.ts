// node-postgres without Drizzle: `createOutbox({ db: nodePostgres(pool) })`. We check out a client, begin and commit on
// it, and always release it; if it may be broken, with the error, so that the pool drops it. The command tag of COMMIT
// shows whether it committed: after a failed statement, Postgres reports ROLLBACK and no error.
import type { Pool, PoolClient } from 'pg'
import { noTransaction, OutboxOptionsError, overError, rolledBack, toError } from '../errors.ts'
import { requireMethods } from '../checks/checks.ts'
import type { Database, OpenTransaction, TransactionWatch } from './driver.ts'
import { deadEnd } from './dead-end.ts'
import { queryNodePostgres } from './node-postgres-query.ts'
import { refuseSingleClient } from './node-postgres-pool.ts'
import { refuseControl, settingsText } from './transaction-text.ts'

/** What a unit of work receives: the query() of a client, and a way to nest. */
export interface NodePostgresTransaction {
  /** As on a client of the pool: text or a config, values, an optional callback; cursors and streams work too. */
  query: PoolClient['query']
  /** Runs the work in a savepoint. If it throws, its changes and its events are undone, and the error is rethrown. */
  savepoint<T>(work: (tx: NodePostgresTransaction) => Promise<T> | T): Promise<T>
}

/** A database for createOutbox(), from a Pool. The outbox never closes the pool and leaves its 'error' event alone. */
export function nodePostgres(pool: Pool): Database<NodePostgresTransaction, never> {
  refuseSingleClient('nodePostgres()', pool)
  requireMethods('pool', pool, ['connect', 'query', 'on'], 'a Pool of node-postgres')
  if ((pool.options as { binary?: boolean } | undefined)?.binary) {
    throw new OutboxOptionsError(
      'nodePostgres() cannot read the results of a pool with binary: true; set binary on the queries that need it instead',
    )
  }
  return {
    client: pool,
    query: (statement) => queryNodePostgres(pool, statement),
    begin: (work, settings) => begin(pool, `begin ${settingsText(settings)}`, work),
    join,
    watched() {
      throw new OutboxOptionsError(
        'a Pool of node-postgres has no transaction() to watch; use withOutbox(), or emitIn(client, event) on the client where you began the transaction',
      )
    },
    // BEGIN is a statement like any other here, so transactions of the application cannot be seen.
    mark() {},
  }
}

type Open = OpenTransaction<NodePostgresTransaction>

async function begin<T>(pool: Pool, text: string, work: (open: Open) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  const session = new Session(client)
  // An idle connection that dies emits 'error' here and nowhere else. Without a listener, that ends the process.
  client.on('error', session.noteBroken)
  try {
    await client.query(text).catch(session.failAs)
    return await session.run(work)
  } finally {
    session.isOver = true
    client.off('error', session.noteBroken)
    client.release(session.broken)
  }
}

function join(tx: NodePostgresTransaction): Open {
  if (typeof tx?.savepoint !== 'function') throw noTransaction()
  const send = tx.query as (...given: unknown[]) => unknown
  return {
    tx,
    query: (statement) => queryNodePostgres(tx, statement),
    savepoint: (work) => tx.savepoint((inner) => work(join(inner))),
    guarded: (watch) => guard(send, watch),
  }
}

function guard(
  send: (...given: unknown[]) => unknown,
  { use, savepoint }: TransactionWatch<NodePostgresTransaction>,
): NodePostgresTransaction {
  const query = (...given: unknown[]) => {
    try {
      use()
      return send(...given)
    } catch (error) {
      const callback = given.findLast((one) => typeof one === 'function')
      if (callback) queueMicrotask(() => (callback as (error: unknown) => void)(error))
      return deadEnd(error)
    }
  }
  const nest = async (work: Nested) => {
    use()
    return await savepoint(work)
  }
  return { query: query as PoolClient['query'], savepoint: nest as never }
}

class Session {
  readonly #client: PoolClient
  #savepoints = 0
  isOver = false
  broken: Error | undefined

  constructor(client: PoolClient) {
    this.#client = client
  }

  readonly noteBroken = (thrown: unknown) => {
    this.broken ??= toError(thrown)
  }

  readonly failAs = (thrown: unknown): never => {
    this.noteBroken(thrown)
    throw thrown
  }

  async run<T>(work: (open: Open) => Promise<T>): Promise<T> {
    let result: T
    try {
      result = await work(this.#open())
    } catch (error) {
      this.isOver = true
      // If the rollback fails too, the work's error still explains what happened.
      await this.#client.query('rollback').catch(this.noteBroken)
      throw error
    }
    this.isOver = true
    const { command } = await this.#client.query('commit').catch((thrown: unknown) => {
      // An error from the server, such as a violated deferred constraint, leaves the connection usable.
      if (!isAnswer(thrown)) this.noteBroken(thrown)
      throw thrown
    })
    if (command === 'COMMIT') return result
    throw rolledBack(`Postgres responded to COMMIT with ${command}`)
  }

  #open(): Open {
    const anyUse = { use: () => {}, savepoint: (work: Nested) => this.#nest(work) }
    return {
      tx: this.#guarded(anyUse),
      query: (statement) => queryNodePostgres(this.#client, statement),
      guarded: (watch) => this.#guarded(watch),
      savepoint: (work) => this.#savepoint(() => work(this.#open())),
    }
  }

  async #nest(work: Nested): Promise<unknown> {
    return await this.#savepoint(async () => work(this.#open().tx))
  }

  #guarded(watch: TransactionWatch<NodePostgresTransaction>): NodePostgresTransaction {
    return guard((...given) => {
      this.#checkOpen()
      refuseControl(textOf(given[0]))
      return (this.#client.query as (...given: unknown[]) => unknown)(...given)
    }, watch)
  }

  /** Once the transaction is over, another caller may be using the client. */
  #checkOpen(): void {
    if (this.isOver) throw overError('the transaction was used')
  }

  async #savepoint<T>(work: () => Promise<T>): Promise<T> {
    this.#checkOpen()
    const name = `aftercommit_${(this.#savepoints += 1)}`
    await this.#client.query(`savepoint ${name}`)
    try {
      const result = await work()
      this.#checkOpen()
      await this.#client.query(`release savepoint ${name}`)
      return result
    } catch (error) {
      if (this.isOver) throw error
      // If this fails, the transaction cannot commit, and the response to COMMIT shows it.
      await this.#client
        .query(`rollback to savepoint ${name}; release savepoint ${name}`)
        .catch(() => {})
      throw error
    }
  }
}

type Nested = (tx: NodePostgresTransaction) => unknown

/** Whether the server responded and keeps the connection. When it ends the connection, the code starts with 57P. */
function isAnswer(thrown: unknown): boolean {
  const { severity, code } = (thrown ?? {}) as { severity?: unknown; code?: unknown }
  return typeof severity === 'string' && !String(code).startsWith('57P')
}

/** The text of anything that query() takes: a string, a config, or a cursor or stream with a config inside. */
function textOf(query: unknown): string {
  if (typeof query === 'string') return query
  const { text, cursor } = (query ?? {}) as { text?: unknown; cursor?: unknown }
  if (typeof text === 'string') return text
  return cursor ? textOf(cursor) : ''
}
