// Applies the generated migrations under drizzle/, those of the outbox or of the inbox. All of it is one transaction
// behind an advisory lock that ends with it, so ten instances may start at once, and a crash half way leaves nothing.
import { readdir, readFile } from 'node:fs/promises'
import type { Database, Executor } from '../drivers/driver.ts'
import { run } from './database.ts'
import { sql, type SQL } from '../drivers/sql.ts'
import { lockName, quoteName, type TableName } from './table-name.ts'

/** Each kind of table has its own files, which use its default name. */
const FOLDERS = {
  outbox: new URL('../../drizzle/', import.meta.url),
  inbox: new URL('../../drizzle/inbox/', import.meta.url),
}

export type TableKind = keyof typeof FOLDERS

/** A folder within the outbox's, which is applied on top of it where it is asked for. */
const PARTITIONED = 'partitioned/'

export interface MigrateOptions {
  /**
   * Makes the table a partitioned one, with a partition for each day. There is no way back: once it is partitioned, it
   * stays so, also without this option. @default false
   */
  partitioned?: boolean
}

const STEP = 'migrate the table'

export async function migrate(
  db: Database<unknown>,
  kind: TableKind,
  table: TableName,
  { partitioned = false }: MigrateOptions = {},
): Promise<void> {
  const ledger = `${table.name}_migrations`
  const names = await listFiles(kind)
  const namesOnTop = kind === 'outbox' ? await listFiles(kind, PARTITIONED) : []
  const pending = (applied: ReadonlySet<string>) => {
    const isPartitioned = partitioned || namesOnTop.some((name) => applied.has(name))
    return [...names, ...(isPartitioned ? namesOnTop : [])].filter((name) => !applied.has(name))
  }
  // Without this check, a service whose role may not create anything could never call migrate().
  if (pending(await appliedNames(db, table.schema, ledger)).length === 0) return

  await db.begin(async (tx) => {
    await lock(tx, lockName(table))
    await createSchema(tx, table.schema)
    // The files name the table without its schema, so the search path has to select it.
    await run(tx, STEP, sql.raw(`set local search_path to ${quoteName(table.schema)}`))
    await run(
      tx,
      STEP,
      sql.raw(
        `create table if not exists ${quoteName(ledger)} (name text primary key, applied_at timestamptz not null default clock_timestamp())`,
      ),
    )
    for (const name of pending(await appliedNames(tx, table.schema, ledger))) {
      for (const statement of await readStatements(kind, name, table.name))
        await run(tx, STEP, statement)
      await run(
        tx,
        STEP,
        sql`insert into ${sql.raw(quoteName(ledger))} (name) values (${name}::text)`,
      )
    }
  })
}

async function listFiles(kind: TableKind, folder = ''): Promise<string[]> {
  const found = await readdir(new URL(folder, FOLDERS[kind]))
  const names = found.filter((name) => name.endsWith('.sql')).toSorted()
  return names.map((name) => `${folder}${name}`)
}

async function appliedNames(db: Executor, schema: string, ledger: string): Promise<Set<string>> {
  const qualified = `${quoteName(schema)}.${quoteName(ledger)}`
  const [ledgerTable] = await run<{ found: string | null }>(
    db,
    STEP,
    sql`select to_regclass(${qualified}::text)::text as found`,
  )
  if (!ledgerTable?.found) return new Set()
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
  await run(tx, STEP, sql`select pg_advisory_xact_lock(hashtextextended(${name}::text, 0))`)
}

// The files are written for a table called "outbox" or "inbox"; its constraints and indexes start with that name.
async function readStatements(kind: TableKind, file: string, table: string): Promise<SQL[]> {
  const text = await readFile(new URL(file, FOLDERS[kind]), 'utf8')
  const names = new RegExp(`"${kind}(_\\w+)?"`, 'g')
  return text
    .replaceAll(names, (_, suffix = '') => quoteName(`${table}${suffix}`))
    .split('--> statement-breakpoint')
    .map((statement) => sql.raw(statement))
}
