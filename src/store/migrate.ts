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

const STEP = 'migrate the table'

export async function migrate(
  db: Database<unknown>,
  kind: TableKind,
  table: TableName,
): Promise<void> {
  const ledger = `${table.name}_migrations`
  const names = (await readdir(FOLDERS[kind])).filter((name) => name.endsWith('.sql')).toSorted()
  // Without this check, a service whose role may not create anything could never call migrate().
  const before = await appliedNames(db, table.schema, ledger)
  if (names.every((name) => before.has(name))) return

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
    const applied = await appliedNames(tx, table.schema, ledger)
    for (const name of names.filter((candidate) => !applied.has(candidate))) {
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
