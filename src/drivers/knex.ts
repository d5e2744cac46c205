// Knex on Postgres: `createOutbox({ db: knexDatabase(knex) })`. A unit of work is knex.transaction(), and its callback gets
// Knex's own transaction. Knex treats any response to COMMIT as success, so we look at the response ourselves: after a
// failed statement, Postgres reports ROLLBACK and no error.
import type { Knex } from 'knex'
import { noTransaction, OutboxOptionsError, rolledBack } from '../errors.ts'
import type { Database, OpenTransaction, TransactionSettings } from './driver.ts'
import { isKnex, type KnexConnections, queryKnex } from './knex-query.ts'
import { guardKnex } from './knex-transaction.ts'
import { markTransactions, unmarked } from './mark-transactions.ts'
import { queryNodePostgres } from './node-postgres-query.ts'
import { type ClientTransaction, openTransaction } from './statement-savepoints.ts'
import { settingsText } from './transaction-text.ts'

/** A database for createOutbox(), from what knex({ client: 'pg' }) returned. The outbox never destroys it. */
// oxlint-disable-next-line typescript/no-empty-object-type
export function knexDatabase<TRecord extends {}, TResult>(
  knex: Knex<TRecord, TResult>,
): Database<Knex.Transaction, Knex<TRecord, TResult>> {
  if (!isKnex(knex) || knex.isTransaction) {
    throw new OutboxOptionsError(
      'knexDatabase() takes what knex({ client: ... }) returned, not a transaction',
    )
  }
  const { driverName } = knex.client as KnexConnections
  if (driverName !== 'pg') {
    throw new OutboxOptionsError(
      `knexDatabase() needs a Knex with client: 'pg', which runs on node-postgres, got ${driverName}`,
    )
  }
  return {
    client: knex,
    query: (statement) => queryKnex(knex, statement),
    begin: (work, settings = {}) => begin(knex, settings, work),
    join,
    watched: (transact) =>
      new Proxy(knex, {
        get(target, property, receiver) {
          if (property === 'transactionProvider') return unwatchable
          if (property !== 'transaction') return Reflect.get(target, property, receiver) as unknown
          return async (work?: unknown, config?: Knex.TransactionConfig) => {
            // Knex's own way to begin without a callback: transaction() or transaction(config).
            if (work === undefined || work === null || (typeof work === 'object' && !config))
              return unwatchable()
            return await transact(work as (tx: unknown) => unknown, settingsOf(config))
          }
        },
      }),
    mark: (mark) => markTransactions(knex, 'transaction', mark),
  }
}

function unwatchable(): never {
  throw new OutboxOptionsError(
    'transaction() of outbox.db takes a function, because a transaction without a callback cannot be watched; use transaction(async (tx) => { ... }), or begin it on your own Knex and call emitIn(tx, event)',
  )
}

function settingsOf(config: Knex.TransactionConfig | undefined): TransactionSettings {
  const { isolationLevel, readOnly, connection } = config ?? {}
  if (connection) {
    throw new OutboxOptionsError(
      'a transaction on a connection of your own cannot be watched on outbox.db; begin it on your own Knex and call emitIn(tx, event)',
    )
  }
  return {
    // 'snapshot', which Postgres does not have, is refused where the settings are checked.
    ...(isolationLevel && { isolationLevel: isolationLevel as 'serializable' }),
    ...(readOnly && { accessMode: 'read only' }),
  }
}

async function begin<T>(
  knex: object,
  { isolationLevel, ...rest }: TransactionSettings,
  work: (open: OpenTransaction<Knex.Transaction>) => Promise<T>,
): Promise<T> {
  // Knex calls a transaction that was rolled back without an error a success.
  let failure: { readonly error: unknown } | null = null
  const run = async (tx: Knex.Transaction) => {
    const session = await sessionOf(tx)
    try {
      const later = settingsText(rest)
      if (later) await session.query({ text: `set transaction ${later}`, values: [] })
      const result = await work(openTransaction(session))
      checkCommit(tx)
      return result
    } catch (error) {
      failure = { error }
      throw error
    } finally {
      session.isOver = true
    }
  }
  const config = isolationLevel ? { isolationLevel } : {}
  const transaction = unmarked(knex, 'transaction')(run, config) as Promise<T>
  const result = await transaction.catch((error: unknown) => {
    throw failure ? failure.error : error
  })
  if (failure) throw (failure as { error: unknown }).error
  return result
}

async function sessionOf(tx: Knex.Transaction): Promise<ClientTransaction<Knex.Transaction>> {
  const connection = await (tx.client as KnexConnections).acquireConnection()
  return {
    query: (statement) => queryNodePostgres(connection, statement),
    guard: (watch) => guardKnex(tx, watch),
    isOver: false,
  }
}

interface CommittingClient {
  query: (connection: unknown, text: unknown) => Promise<Answer | undefined>
}

interface Answer {
  readonly response?: { readonly command?: string }
}

/** From here on the transaction's client sends nothing but COMMIT, or ROLLBACK. */
function checkCommit(tx: Knex.Transaction): void {
  const client = tx.client as CommittingClient
  const { query } = client
  client.query = async (connection, text) => {
    const answer = await query.call(client, connection, text)
    const command = answer?.response?.command
    if (String(text).startsWith('COMMIT') && command !== 'COMMIT')
      throw rolledBack(`Postgres responded to COMMIT with ${command}`)
    return answer
  }
}

// The opener of the transaction knows when it is over. Knex's own nested transactions and ours begin the same way.
function join(tx: Knex.Transaction): OpenTransaction<Knex.Transaction> {
  if (!isKnex(tx) || !tx.isTransaction) throw noTransaction()
  return {
    tx,
    query: (statement) => queryKnex(tx, statement),
    savepoint: (work) => tx.transaction((inner) => work(join(inner))),
    guarded: (watch) => guardKnex(tx, watch),
  }
}
