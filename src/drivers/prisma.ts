// Prisma on Postgres: `createOutbox({ db: prismaDatabase(prisma) })`. A unit of work is an interactive transaction, and its
// callback gets what $transaction() passes to its own. Prisma does not report whether COMMIT committed or rolled back, so no
// statement may get through that would end the transaction, or fail after the save. One operation may send several statements,
// so the save waits for every operation in flight.
import { rejectUnknown, requireDuration, withoutUndefined } from '../checks/checks.ts'
import type { Duration } from '../checks/duration.ts'
import { noTransaction, OutboxOptionsError } from '../errors.ts'
import type { Database, OpenTransaction, TransactionSettings } from './driver.ts'
import { markTransactions, unmarked } from './mark-transactions.ts'
import { InFlight } from './in-flight.ts'
import { isPrisma, isPrismaTransaction, type PrismaRaw, queryPrisma } from './prisma-query.ts'
import { guardPrisma, isGuarded } from './prisma-transaction.ts'
import { type ClientTransaction, inSavepoint, openTransaction } from './statement-savepoints.ts'
import { settingsText } from './transaction-text.ts'

/** A client that `prisma generate` made, with or without extensions. */
export interface PrismaDatabaseClient extends PrismaRaw {
  // Only `any` lets each generated client's own transaction type stand here and come out again.
  // oxlint-disable-next-line typescript/no-explicit-any
  $transaction(work: (tx: any) => Promise<any>, options?: any): Promise<any>
}

/** What $transaction() of the client passes to its callback. */
export type PrismaTransactionOf<TClient extends PrismaDatabaseClient> = Parameters<
  Parameters<TClient['$transaction']>[0]
>[0]

/** Prisma's own limits. Those left out are the client's `transactionOptions`, or Prisma's defaults. */
export interface PrismaLimits {
  /** How long a unit of work may wait for a connection. Prisma's default is 2 seconds. */
  maxWait?: Duration
  /** How long a unit of work may be open before Prisma rolls it back. Prisma's default is 5 seconds. */
  timeout?: Duration
}

/** In milliseconds, as Prisma takes them. */
type Limits = { readonly [Limit in keyof PrismaLimits]?: number }

/** A database for createOutbox(), from a PrismaClient on Postgres. The outbox never disconnects it. */
export function prismaDatabase<TClient extends PrismaDatabaseClient>(
  prisma: TClient,
  given: PrismaLimits = {},
): Database<PrismaTransactionOf<TClient>, TClient> {
  if (!isPrisma(prisma) || isPrismaTransaction(prisma)) {
    throw new OutboxOptionsError('prismaDatabase() takes a PrismaClient, not a transaction')
  }
  const limits = resolveLimits(given)
  return {
    client: prisma,
    query: (statement) => queryPrisma(prisma, statement),
    begin: (work, settings) => begin(prisma, { ...limits, ...settings }, work),
    join: (tx) => join(tx),
    watched: (transact) =>
      new Proxy(prisma, {
        get(target, property) {
          const value: unknown = Reflect.get(target, property)
          if (property !== '$transaction') return value
          return async (work: unknown, options: PrismaOptions = {}) => {
            // A list of queries has no place for events.
            if (Array.isArray(work))
              return await Reflect.apply(value as Method, target, [work, options])
            return await transact(work as (tx: unknown) => unknown, settingsOf(options))
          }
        },
      }),
    mark: (mark) => markTransactions(prisma, '$transaction', mark, { evenProxy: true }),
  }
}

function resolveLimits(given: PrismaLimits): Limits {
  rejectUnknown('the second argument of prismaDatabase()', given, ['maxWait', 'timeout'])
  const limits = Object.entries(withoutUndefined(given))
  return Object.fromEntries(limits.map(([name, value]) => [name, requireDuration(name, value, 1)]))
}

type Method = (...given: unknown[]) => Promise<unknown>

interface PrismaOptions extends Limits {
  readonly isolationLevel?: string
}

/** With Prisma's limits, which travel along with the settings. */
function settingsOf({ isolationLevel, ...limits }: PrismaOptions): TransactionSettings {
  // 'ReadCommitted' is 'read committed' everywhere else.
  const level = isolationLevel?.replaceAll(/(?<!^)[A-Z]/g, ' $&').toLowerCase()
  return { ...limits, ...(level && { isolationLevel: level as 'serializable' }) }
}

async function begin<TTx extends PrismaRaw, T>(
  prisma: PrismaDatabaseClient,
  { maxWait, timeout, ...settings }: TransactionSettings & Limits,
  work: (open: OpenTransaction<TTx>) => Promise<T>,
): Promise<T> {
  const run = async (tx: TTx) => {
    const session = sessionOf(tx)
    try {
      const text = settingsText(settings)
      if (text) await session.query({ text: `set transaction ${text}`, values: [] })
      return await work(openTransaction(session))
    } finally {
      session.isOver = true
    }
  }
  const limits = {
    ...(maxWait !== undefined && { maxWait }),
    ...(timeout !== undefined && { timeout }),
  }
  return (await unmarked(prisma, '$transaction')(run, limits)) as T
}

function sessionOf<TTx extends PrismaRaw>(tx: TTx): ClientTransaction<TTx> {
  return {
    query: (statement) => queryPrisma(tx, statement),
    guard: (watch, inFlight) => guardPrisma(tx, watch, inFlight),
    isOver: false,
  }
}

interface Nests<TTx> {
  $transaction<T>(work: (tx: TTx) => Promise<T>): Promise<T>
}

// The opener of the transaction knows when it is over. One that we opened refuses savepoints as statements.
function join<TTx extends PrismaRaw>(tx: TTx, inFlight = new InFlight()): OpenTransaction<TTx> {
  if (!isPrismaTransaction(tx)) throw noTransaction()
  const session = sessionOf(tx)
  return {
    tx,
    async query(statement) {
      await inFlight.ended()
      return await session.query(statement)
    },
    guarded: (watch) => session.guard(watch, inFlight),
    savepoint: (work) =>
      isGuarded(tx)
        ? (tx as unknown as Nests<TTx>).$transaction((inner) => work(join(inner)))
        : inSavepoint(session, () => inFlight.inside((level) => work(join(tx, level)))),
  }
}
