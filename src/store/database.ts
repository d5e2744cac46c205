// The one seam to Drizzle: any Drizzle Postgres database, whatever its driver, as something that runs
// a statement. Errors come out without Drizzle's wrapper, whose message prints every parameter.
import { DrizzleQueryError, sql as drizzleSql, type SQL as DrizzleSQL } from 'drizzle-orm'
import type { PgTransactionConfig } from 'drizzle-orm/pg-core'
import { formatDuration } from '../duration.ts'
import { StoreError } from '../errors.ts'
import { raceTimeout } from '../race-timeout.ts'
import type { SQL } from './sql.ts'

/** What a Drizzle database and a Drizzle transaction have in common. */
export interface Executor {
  execute(query: DrizzleSQL): PromiseLike<unknown>
}

/** Any Drizzle Postgres database: postgres-js, node-postgres, PGlite and their like. */
export interface DrizzleDatabase extends Executor {
  transaction(
    // Only `any` lets each driver's own transaction type stand here and come out again in TransactionOf.
    // oxlint-disable-next-line typescript/no-explicit-any
    work: (tx: any) => Promise<unknown>,
    config?: PgTransactionConfig,
  ): Promise<unknown>
}

/** The transaction that a database hands to its callback, with the user's own schema in it. */
export type TransactionOf<TDb extends DrizzleDatabase> = Parameters<
  Parameters<TDb['transaction']>[0]
>[0]

const UNDEFINED_TABLE = '42P01'
const UNDEFINED_COLUMN = '42703'
const DUPLICATE_TABLE = '42P07'
const SERIALIZATION_FAILURES = new Set<unknown>(['40001', '40P01'])

/** Whether Postgres gave up a transaction that would go through if it were run again. */
export function isSerializationFailure(thrown: unknown): boolean {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (SERIALIZATION_FAILURES.has((error as { code?: unknown }).code)) return true
  }
  return false
}

/**
 * Runs one statement. `step` says what was being done, in the error and to whoever looks at the statements of
 * the database; it is a text of ours, and parameters never appear in either.
 */
export async function run<Row>(executor: Executor, step: string, query: SQL): Promise<Row[]> {
  try {
    const result = await executor.execute(toDrizzle(step, query))
    // postgres-js answers with the rows, node-postgres and PGlite with an object around them.
    return (Array.isArray(result) ? result : (result as { rows: Row[] }).rows) as Row[]
  } catch (thrown) {
    throw storeError(step, thrown instanceof DrizzleQueryError ? thrown.cause : thrown)
  }
}

function toDrizzle(step: string, { texts, values }: SQL): DrizzleSQL {
  const named = [`/* aftercommit: ${step} */ ${texts[0]}`, ...texts.slice(1)]
  return drizzleSql(Object.assign(named, { raw: named }), ...values)
}

/**
 * The same for the background, which must not wait for ever on a connection whose other end is gone. The
 * statement itself cannot be called off: every one that comes here may also be carried out later.
 */
export async function runWithin<Row>(
  timeoutMs: number,
  executor: Executor,
  step: string,
  query: SQL,
): Promise<Row[]> {
  const rows = await raceTimeout(run<Row>(executor, step, query), timeoutMs)
  if (rows !== 'late') return rows
  const waited = formatDuration(timeoutMs)
  throw new StoreError('STORE_TIMEOUT', `${step}: the database did not answer in ${waited}`)
}

function storeError(step: string, cause: unknown): StoreError {
  const { code, message } = (cause ?? {}) as { code?: string; message?: string }
  const safe = { cause: withoutData(cause) }
  if (code === UNDEFINED_TABLE || code === UNDEFINED_COLUMN) {
    return new StoreError(
      'TABLE_MISSING',
      `${step}: ${message}; call migrate(), pass migrate: true, or check the options schema and table`,
      safe,
    )
  }
  if (code === DUPLICATE_TABLE) {
    return new StoreError(
      'STORE_FAILED',
      `${step}: ${message}, and migrate() did not make it; keep the table in your own migrations and do not call migrate(), or drop it`,
      safe,
    )
  }
  return new StoreError('STORE_FAILED', `${step}: ${message ?? 'the database failed'}`, safe)
}

// Postgres quotes the whole row in the detail of some errors, and whoever prints an error prints its
// cause: what is kept says which rule was broken, not with which data.
function withoutData(thrown: unknown): unknown {
  if (!(thrown instanceof Error) || !('detail' in thrown || 'where' in thrown)) return thrown
  const { detail: _, where: __, ...fields } = thrown as Error & Record<string, unknown>
  const safe = Object.assign(new Error(thrown.message), fields)
  safe.name = thrown.name
  if (thrown.stack) safe.stack = thrown.stack
  return safe
}
