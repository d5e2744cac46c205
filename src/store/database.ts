// Runs our statements on whatever database there is, each with a name and a limit, and makes what comes back of a
// failure into an error that says what was being done and tells nobody's data.
import type { Executor, QueryOptions } from '../drivers/driver.ts'
import { formatDuration } from '../duration.ts'
import { rolledBack, StoreError } from '../errors.ts'
import { raceTimeout } from '../race-timeout.ts'
import { sql, type SQL } from './sql.ts'

export const UNDEFINED_TABLE = '42P01'
const UNDEFINED_COLUMN = '42703'
const DUPLICATE_TABLE = '42P07'
const FAILED_TRANSACTION = '25P02'
const NOT_PREPARED = '26000'
const SERIALIZATION_FAILURES = ['40001', '40P01']

/** Whether Postgres gave up a transaction that would go through if it were run again. */
export function isSerializationFailure(thrown: unknown): boolean {
  return hasSqlState(thrown, ...SERIALIZATION_FAILURES)
}

/** Whether Postgres gave one of these as the reason, however many errors are around it. */
export function hasSqlState(thrown: unknown, ...states: readonly unknown[]): boolean {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (states.includes((error as { code?: unknown }).code)) return true
  }
  return false
}

/**
 * Runs one statement. `step` says what was being done, in the error and to whoever looks at the statements of
 * the database; it is a text of ours, and parameters never appear in either.
 */
export async function run<Row>(
  executor: Executor,
  step: string,
  query: SQL,
  options?: QueryOptions,
): Promise<Row[]> {
  try {
    const named = sql`${sql.raw(`/* aftercommit: ${step} */ `)}${query}`
    return (await executor.query(named, options)) as Row[]
  } catch (thrown) {
    throw storeError(step, thrown)
  }
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
  if (code === NOT_PREPARED) {
    return new StoreError(
      'STORE_FAILED',
      `${step}: ${message}; a pooler hands the connections round, so make the client with postgres(url, { prepare: false })`,
      safe,
    )
  }
  if (code === FAILED_TRANSACTION) return rolledBack(step, safe)
  if (code === DUPLICATE_TABLE) {
    return new StoreError(
      'STORE_FAILED',
      `${step}: ${message}, and migrate() did not make it; keep the table in your own migrations and do not call migrate(), or drop it`,
      safe,
    )
  }
  return new StoreError('STORE_FAILED', `${step}: ${message ?? 'the database failed'}`, safe)
}

// Postgres quotes the whole row in the detail of some errors, postgres.js and PGlite keep the parameters of the
// statement, and whoever prints an error prints its cause: what is kept says which rule was broken, not with which
// data.
const DATA = ['detail', 'where', 'query', 'parameters', 'params', 'args', 'queryOptions']

function withoutData(thrown: unknown): unknown {
  if (!(thrown instanceof Error) || !DATA.some((field) => field in thrown)) return thrown
  const fields = Object.entries(thrown).filter(([name]) => !DATA.includes(name))
  const safe = Object.assign(new Error(thrown.message), Object.fromEntries(fields))
  safe.name = thrown.name
  if (thrown.stack) safe.stack = thrown.stack
  return safe
}
