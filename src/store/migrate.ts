// Applies the generated migrations under drizzle/. All of it is one transaction behind an advisory
// lock that ends with it, so ten instances may start at once and a crash half way leaves nothing.
import { readdir, readFile } from 'node:fs/promises'
import type { Database, Executor } from '../drivers/driver.ts'
import { run } from './database.ts'
import { sql, type SQL } from './sql.ts'
import { lockName, quoteName, type TableName } from './table-name.ts'

const FOLDER = new URL('../../drizzle/', import.meta.url)
const STEP = 'migrate the outbox table'

export async function migrate(db: Database<unknown>, table: TableName): Promise<void> {
  const ledger = `${table.name}_migrations`
  const names = (await readdir(FOLDER)).filter((name) => name.endsWith('.sql')).toSorted()
  // Without this look a service whose role may not create anything could not call migrate() at all.
  const before = await appliedNames(db, table.schema, ledger)
  if (names.every((name) => before.has(name))) return

  await db.begin(async (tx) => {
    await run(tx, STEP, sql`select pg_advisory_xact_lock(hashtextextended(${lockName(table)}, 0))`)
    await createSchema(tx, table.schema)
    // The files name the table without its schema; with this they mean the right one.
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
      for (const statement of await readStatements(name, table.name)) await run(tx, STEP, statement)
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

// "if not exists" alone asks for the right to create schemas even where the schema is there.
async function createSchema(tx: Executor, schema: string): Promise<void> {
  const found = await run(tx, STEP, sql`select 1 from pg_namespace where nspname = ${schema}::text`)
  if (found.length === 0) await run(tx, STEP, sql.raw(`create schema ${quoteName(schema)}`))
}

// The files are written for a table called "outbox"; its constraints and indexes start with that name.
async function readStatements(file: string, table: string): Promise<SQL[]> {
  const text = await readFile(new URL(file, FOLDER), 'utf8')
  return text
    .replaceAll(/"outbox(_\w+)?"/g, (_, suffix = '') => quoteName(`${table}${suffix}`))
    .split('--> statement-breakpoint')
    .map((statement) => sql.raw(statement))
}
