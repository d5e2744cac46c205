// Runs our statements on any database, each with a name and, in the background, a time limit. A failure becomes an
// error that names the step and never includes data.
import type { Executor, QueryOptions } from '../drivers/driver.ts'
import { formatDuration } from '../checks/duration.ts'
import { OutboxError, rolledBack, StoreError } from '../errors.ts'
import { raceTimeout } from '../runtime/race-timeout.ts'
import type { SQL } from '../drivers/sql.ts'
import { sqlStateOf } from '../drivers/sql-state.ts'

const UNDEFINED_TABLE = '42P01'
const UNDEFINED_COLUMN = '42703'
const UNDEFINED_FUNCTION = '42883'
const DUPLICATE_TABLE = '42P07'
const INSUFFICIENT_PRIVILEGE = '42501'
const LOCK_NOT_AVAILABLE = '55P03'
const QUERY_CANCELED = '57014'
const READ_ONLY_TRANSACTION = '25006'
const FAILED_TRANSACTION = '25P02'
const NOT_PREPARED = '26000'
const SERIALIZATION_FAILURES = ['40001', '40P01']

/** What to do about a server that permits no changes. */
export const NO_WRITES =
  'the server is a standby, or its role or database is read-only: connect to the primary'

const RIGHTS_REMEDY =
  '`aftercommit grants` prints the rights, `aftercommit doctor` names what is missing'

/** Whether Postgres aborted a transaction that would succeed if it were run again. */
export function isSerializationFailure(thrown: unknown): boolean {
  return hasSqlState(thrown, ...SERIALIZATION_FAILURES)
}

/** Whether Postgres denied the role a right. */
export function isDenied(thrown: unknown): boolean {
  return hasSqlState(thrown, INSUFFICIENT_PRIVILEGE)
}

/** Whether the server, or the role's setting, permits no changes, as on a standby. */
export function isReadOnly(thrown: unknown): boolean {
  return hasSqlState(thrown, READ_ONLY_TRANSACTION)
}

/** Whether a lock_timeout passed, or a lock that must not be waited for was taken. */
export function isLocked(thrown: unknown): boolean {
  return hasSqlState(thrown, LOCK_NOT_AVAILABLE)
}

/** Whether Postgres gave one of these codes as the reason, however deep in the chain of causes. */
function hasSqlState(thrown: unknown, ...states: readonly unknown[]): boolean {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (states.includes(sqlStateOf(error))) return true
  }
  return false
}

/**
 * Runs one statement. `step` names what was being done, both in the error and to an operator who looks at the
 * database's statements. It is our own text, and parameters appear in neither.
 */
export async function run<Row>(
  executor: Executor,
  step: string,
  query: SQL,
  options?: QueryOptions,
): Promise<Row[]> {
  try {
    const named = { text: `/* aftercommit: ${step} */ ${query.text}`, values: query.values }
    return (await executor.query(named, options)) as Row[]
  } catch (thrown) {
    // A transaction that is over has an error of its own.
    if (thrown instanceof OutboxError) throw thrown
    throw storeError(step, thrown)
  }
}

/** What runInBackground() needs. */
export interface Background {
  readonly db: Executor
  readonly statementTimeoutMs: number
}

/**
 * run() for the background, which must not wait forever on a connection whose other end is gone. The statement itself
 * cannot be cancelled, so every statement that runs here must be safe to take effect later.
 */
export async function runInBackground<Row>(
  { db, statementTimeoutMs }: Background,
  step: string,
  query: SQL,
): Promise<Row[]> {
  const rows = await raceTimeout(run<Row>(db, step, query), statementTimeoutMs)
  if (rows !== 'late') return rows
  const waited = formatDuration(statementTimeoutMs)
  throw new StoreError('STORE_TIMEOUT', `${step}: the database did not respond within ${waited}`)
}

function storeError(step: string, cause: unknown): StoreError {
  const { code, message } = (cause ?? {}) as { code?: string; message?: string }
  const safe = { cause: withoutData(cause) }
  if (code === UNDEFINED_FUNCTION) {
    return new StoreError(
      'TABLE_MISSING',
      `${step}: ${message}; call migrate(), or, if the table is in your own migrations, run the file of this package that makes it, drizzle/0001_follows.sql or one in drizzle/partitioned/, with the names of your table`,
      safe,
    )
  }
  if (code === UNDEFINED_COLUMN) {
    return new StoreError(
      'TABLE_MISSING',
      `${step}: ${message}; the table does not match this version: update it in your own migrations, or, if it is from before the first release, drop it together with its _migrations table and call migrate()`,
      safe,
    )
  }
  if (code === UNDEFINED_TABLE) {
    return new StoreError(
      'TABLE_MISSING',
      `${step}: ${message}; call migrate(), pass migrate: true, or check the options schema and table`,
      safe,
    )
  }
  if (code === INSUFFICIENT_PRIVILEGE) {
    return new StoreError('STORE_FAILED', `${step}: ${message}; ${RIGHTS_REMEDY}`, safe)
  }
  if (code === NOT_PREPARED) {
    return new StoreError(
      'STORE_FAILED',
      `${step}: ${message}; a pooler shares connections between clients, so create the client with postgres(url, { prepare: false })`,
      safe,
    )
  }
  if (code === QUERY_CANCELED) {
    return new StoreError('STORE_TIMEOUT', `${step}: ${message}`, safe)
  }
  if (code === READ_ONLY_TRANSACTION) {
    return new StoreError('STORE_FAILED', `${step}: ${message}; ${NO_WRITES}`, safe)
  }
  if (code === FAILED_TRANSACTION) return rolledBack(step, safe)
  if (code === DUPLICATE_TABLE) {
    return new StoreError(
      'STORE_FAILED',
      `${step}: ${message}, but migrate() did not create it; keep the table in your own migrations and do not call migrate(), or drop the table`,
      safe,
    )
  }
  return new StoreError('STORE_FAILED', `${step}: ${message ?? 'the database failed'}`, safe)
}

// Postgres quotes the whole row in the detail of some errors, and postgres.js and PGlite keep the parameters of the
// statement. Code that prints an error also prints its cause. What is kept names the broken rule, not the data.
const DATA = ['detail', 'where', 'query', 'parameters', 'params', 'args', 'queryOptions']

function withoutData(thrown: unknown): unknown {
  if (!(thrown instanceof Error) || !DATA.some((field) => field in thrown)) return thrown
  const fields = Object.entries(thrown).filter(([name]) => !DATA.includes(name))
  const safe = Object.assign(new Error(thrown.message), Object.fromEntries(fields))
  safe.name = thrown.name
  if (thrown.stack) safe.stack = thrown.stack
  return safe
}
