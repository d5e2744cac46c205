// node-postgres without Drizzle: `createOutbox({ db: nodePostgres(pool) })`. We check a client out, begin and
// commit on it, and always give it back, with the error if it may be broken, so that the pool drops it. COMMIT's
// answer says whether it committed: Postgres answers ROLLBACK, without an error, when a statement had failed.
import type { Pool, PoolClient, QueryConfig } from 'pg'
import { noTransaction, OutboxOptionsError, overError, rolledBack, toError } from '../errors.ts'
import type { SQL } from '../store/sql.ts'
import { requireMethods } from '../validate.ts'
import type { Database, OpenTransaction, TransactionWatch } from './driver.ts'
import { refuseSingleClient } from './node-postgres-pool.ts'
import { refuseControl, settingsText } from './transaction-text.ts'

/** What a unit of work gets: the query() of a client, and a way to nest. */
export interface NodePostgresTransaction {
  /** As on a client of the pool: text or a config, values, a callback if you like; cursors and streams too. */
  query: PoolClient['query']
  /** Runs the work in a savepoint: if it throws, what it did is undone, with its events, and the error thrown. */
  savepoint<T>(work: (tx: NodePostgresTransaction) => Promise<T> | T): Promise<T>
}

/** A database for createOutbox(), from a Pool. Neither it nor its 'error' event is touched. */
export function nodePostgres(pool: Pool): Database<NodePostgresTransaction> {
  refuseSingleClient('nodePostgres()', pool)
  requireMethods('pool', pool, ['connect', 'query', 'on'], 'a Pool of node-postgres')
  if ((pool.options as { binary?: boolean } | undefined)?.binary) {
    throw new OutboxOptionsError(
      'nodePostgres() cannot read the results of a pool with binary: true; set it on the queries that need it',
    )
  }
  return {
    client: pool,
    query: async (statement) => (await pool.query(configOf(statement))).rows,
    begin: (work, settings) => begin(pool, `begin ${settingsText(settings)}`, work),
    join,
  }
}

type Open = OpenTransaction<NodePostgresTransaction>

async function begin<T>(pool: Pool, text: string, work: (open: Open) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  const session = new Session(client)
  // A connection that dies at rest tells of it here alone, and ends the process if nobody listens.
  client.on('error', session.isBroken)
  try {
    await client.query(text).catch(session.failAs)
    return await session.run(work)
  } finally {
    session.isOver = true
    client.off('error', session.isBroken)
    client.release(session.broken)
  }
}

function join(tx: NodePostgresTransaction): Open {
  if (typeof tx?.savepoint !== 'function') throw noTransaction()
  const send = tx.query as (...given: unknown[]) => unknown
  return {
    tx,
    query: async (statement) => (await tx.query(configOf(statement))).rows,
    savepoint: (work) => tx.savepoint((inner) => work(join(inner))),
    guarded: (watch) => guard(send, watch),
  }
}

function guard(
  send: (...given: unknown[]) => unknown,
  { use, savepoint }: TransactionWatch<NodePostgresTransaction>,
): NodePostgresTransaction {
  const query = (...given: unknown[]) => {
    use()
    return send(...given)
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

  readonly isBroken = (thrown: unknown) => {
    this.broken ??= toError(thrown)
  }

  readonly failAs = (thrown: unknown): never => {
    this.isBroken(thrown)
    throw thrown
  }

  async run<T>(work: (open: Open) => Promise<T>): Promise<T> {
    let result: T
    try {
      result = await work(this.#open())
    } catch (error) {
      this.isOver = true
      // Whatever keeps it from rolling back, it is the work's failure that tells what happened.
      await this.#client.query('rollback').catch(this.isBroken)
      throw error
    }
    this.isOver = true
    const { command } = await this.#client.query('commit').catch((thrown: unknown) => {
      // An answer of the server, such as a deferred constraint, leaves the connection as good as it was.
      if (!isAnswer(thrown)) this.isBroken(thrown)
      throw thrown
    })
    if (command === 'COMMIT') return result
    throw rolledBack(`COMMIT was answered with ${command}`)
  }

  #open(): Open {
    const anyUse = { use: () => {}, savepoint: (work: Nested) => this.#nest(work) }
    return {
      tx: this.#guarded(anyUse),
      query: async (statement) => (await this.#client.query(configOf(statement))).rows,
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

  /** When it is over, the client may be somebody else's. */
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
      // If this fails the transaction cannot commit, and the answer to COMMIT says so.
      await this.#client
        .query(`rollback to savepoint ${name}; release savepoint ${name}`)
        .catch(() => {})
      throw error
    }
  }
}

type Nested = (tx: NodePostgresTransaction) => unknown

// Everything as text: parsers that were set for the whole process are the user's.
function configOf({ text, values }: SQL): QueryConfig {
  return { text, values: [...values], types: { getTypeParser: () => String } }
}

/** Of a server that goes on: one that ends the connection says so with a code of this class. */
function isAnswer(thrown: unknown): boolean {
  const { severity, code } = (thrown ?? {}) as { severity?: unknown; code?: unknown }
  return typeof severity === 'string' && !String(code).startsWith('57P')
}

/** The text of whatever query() takes: a string, a config, or a cursor or stream with a config inside. */
function textOf(query: unknown): string {
  if (typeof query === 'string') return query
  const { text, cursor } = (query ?? {}) as { text?: unknown; cursor?: unknown }
  if (typeof text === 'string') return text
  return cursor ? textOf(cursor) : ''
}
