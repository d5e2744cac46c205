// Applies the generated migrations under drizzle/, those of the outbox or of the inbox. All of it is one transaction
// behind an advisory lock that ends with it, so ten instances may start at once, and a crash half way leaves nothing.
import { readdir, readFile } from 'node:fs/promises'
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { Database, Executor } from '../drivers/driver.ts'
import { StoreError } from '../errors.ts'
import { Turns } from '../runtime/turns.ts'
import { isDenied, isLocked, run } from './database.ts'
import { sql } from '../drivers/sql.ts'
import { lockName, quoteName, type TableName } from './table-name.ts'

/** Each kind of table has its own files, which use its default name. */
const FOLDERS = {
  outbox: new URL('../../drizzle/', import.meta.url),
  inbox: new URL('../../drizzle/inbox/', import.meta.url),
}

export type TableKind = keyof typeof FOLDERS

/** A folder within the outbox's, which is applied on top of it on request. */
const PARTITIONED = 'partitioned/'

export interface MigrateOptions {
  /**
   * Makes the table a partitioned one, with a partition for each day. There is no way back: once it is partitioned, it
   * stays so, also without this option. @default false
   */
  partitioned?: boolean
}

const STEP = 'migrate the table'

/** Every save waits behind a migration that waits for a lock, so that gives up soon, lets them through, and tries again. */
export const LOCK_TIMEOUT_MS = 2_000
const BETWEEN_TRIES_MS = 1_000
const PATIENCE_MS = 60_000

/** A migration with this in its name breaks older versions. An older version that finds it refuses to start. */
const BREAKING = '_breaking_'

export async function migrate(
  db: Database<unknown>,
  kind: TableKind,
  table: TableName,
  { partitioned = false }: MigrateOptions = {},
): Promise<void> {
  const ledger = ledgerOf(table)
  const pending = await pendingFiles(kind, partitioned)
  // Without this check, a service whose role may not create anything could never call migrate().
  if (pending((await appliedNames(db, table)) ?? NONE).length === 0) return

  await untilUnlocked(() =>
    turnsOf(db.client).take(() =>
      db.begin(async (tx) => {
        // Another instance that migrates is waited for without a limit: only other migrations of this process wait behind this.
        await lock(tx, lockName(table))
        await run(tx, STEP, sql.raw(`set local lock_timeout to ${LOCK_TIMEOUT_MS}`))
        await createSchema(tx, table.schema)
        // The files name the table without its schema, so the search path has to select it.
        await run(tx, STEP, sql.raw(`set local search_path to ${quoteName(table.schema)}`))
        await run(tx, STEP, sql.raw(createLedger(ledger)))
        for (const name of pending((await appliedNames(tx, table)) ?? NONE)) {
          for (const statement of await readStatements(kind, name, table.name))
            await run(tx, STEP, sql.raw(statement))
          await run(
            tx,
            STEP,
            sql`insert into ${sql.raw(quoteName(ledger))} (name) values (${name}::text)`,
          )
        }
      }),
    ),
  )
}

/**
 * A process with an outbox for each tenant may start them all at once. If all their migrations were in the queue for a
 * connection, whatever else the first ones do at start would wait behind them and give up.
 */
function turnsOf(client: unknown): Turns {
  const turns = turnsByClient.get(client as object) ?? new Turns()
  turnsByClient.set(client as object, turns)
  return turns
}

const turnsByClient = new WeakMap<object, Turns>()

async function untilUnlocked(apply: () => Promise<void>): Promise<void> {
  const until = performance.now() + PATIENCE_MS
  for (;;) {
    try {
      return await apply()
    } catch (error) {
      if (!isLocked(error)) throw error
      if (performance.now() > until) {
        throw new StoreError(
          'STORE_TIMEOUT',
          `${STEP}: another session has held a lock on it for ${PATIENCE_MS / 1_000} seconds; nothing was changed. \`aftercommit doctor\` names the session: end it, and call migrate() again`,
          { cause: error },
        )
      }
    }
    await delay(BETWEEN_TRIES_MS)
  }
}

/** Migrations of a newer version that were applied here. Rejects if this version cannot work with one of them. */
export async function newerMigrations(
  db: Executor,
  kind: TableKind,
  table: TableName,
): Promise<readonly string[]> {
  const applied = await appliedNames(db, table).catch((error: unknown) => {
    if (isDenied(error)) return null
    throw error
  })
  const known = [...(await listFiles(kind)), ...(await listOnTop(kind))]
  const newer = [...(applied ?? NONE)].filter((name) => !known.includes(name))
  const breaking = newer.filter((name) => name.includes(BREAKING))
  if (breaking.length === 0) return newer
  throw new StoreError(
    'SCHEMA_NEWER',
    `a newer version of aftercommit has applied ${breaking.join(', ')}, and this version cannot work with that; update this service`,
  )
}

const NONE: ReadonlySet<string> = new Set()

/** Which files are still to be applied, given those that are. */
export async function pendingFiles(
  kind: TableKind,
  partitioned: boolean,
): Promise<(applied: ReadonlySet<string>) => string[]> {
  const names = await listFiles(kind)
  const namesOnTop = await listOnTop(kind)
  return (applied) => {
    const isPartitioned = partitioned || namesOnTop.some((name) => applied.has(name))
    return [...names, ...(isPartitioned ? namesOnTop : [])].filter((name) => !applied.has(name))
  }
}

/** The table that remembers which files were applied. */
export function ledgerOf({ name }: TableName): string {
  return `${name}_migrations`
}

export function createLedger(ledger: string): string {
  return `create table if not exists ${quoteName(ledger)} (name text primary key, applied_at timestamptz not null default clock_timestamp())`
}

async function listOnTop(kind: TableKind): Promise<string[]> {
  return kind === 'outbox' ? await listFiles(kind, PARTITIONED) : []
}

async function listFiles(kind: TableKind, folder = ''): Promise<string[]> {
  const found = await readdir(new URL(folder, FOLDERS[kind]))
  const names = found.filter((name) => name.endsWith('.sql')).toSorted()
  return names.map((name) => `${folder}${name}`)
}

/** null: migrate() has never run, so the table is missing or kept in migrations of the application's own. */
export async function appliedNames(
  db: Executor,
  table: TableName,
): Promise<ReadonlySet<string> | null> {
  const qualified = `${quoteName(table.schema)}.${quoteName(ledgerOf(table))}`
  const [ledgerTable] = await run<{ found: string | null }>(
    db,
    STEP,
    sql`select to_regclass(${qualified}::text)::text as found`,
  )
  if (!ledgerTable?.found) return null
  const rows = await run<{ name: string }>(db, STEP, sql`select name from ${sql.raw(qualified)}`)
  return new Set(rows.map((row) => row.name))
}

// "if not exists" alone requires the right to create schemas even if the schema exists. It also fails when another
// table's migration, under its own lock, creates the same schema at the same time.
async function createSchema(tx: Executor, schema: string): Promise<void> {
  const exists = async () => {
    return await run(tx, STEP, sql`select 1 from pg_namespace where nspname = ${schema}::text`)
  }
  if ((await exists()).length > 0) return
  await lock(tx, `aftercommit:${quoteName(schema)}`)
  if ((await exists()).length > 0) return
  await run(tx, STEP, sql.raw(`create schema ${quoteName(schema)}`))
}

async function lock(tx: Executor, name: string): Promise<void> {
  await run(tx, STEP, sql`select pg_advisory_xact_lock(hashtextextended(${name}::text, 0))::text`)
}

// The files are written for a table called "outbox" or "inbox"; its constraints and indexes start with that name.
export async function readStatements(
  kind: TableKind,
  file: string,
  table: string,
): Promise<string[]> {
  const text = await readFile(new URL(file, FOLDERS[kind]), 'utf8')
  const names = new RegExp(`"${kind}(_\\w+)?"`, 'g')
  return text
    .replaceAll(names, (_, suffix = '') => quoteName(`${table}${suffix}`))
    .split('--> statement-breakpoint')
}
