// What migrate() would run, as a script: for a database that only its administrators may change, and for reading. It also
// writes the ledger, so that migrate() afterwards finds everything applied.
import type { Executor } from '../drivers/driver.ts'
import {
  appliedNames,
  createLedger,
  ledgerOf,
  LOCK_TIMEOUT_MS,
  type MigrateOptions,
  pendingFiles,
  readStatements,
  type TableKind,
} from './migrate.ts'
import { lockName, quoteName, type TableName } from './table-name.ts'

/** Without a database everything from the first file on; with one, only what is not applied there. */
export async function migrationScript(
  db: Executor | null,
  kind: TableKind,
  table: TableName,
  { partitioned = false }: MigrateOptions = {},
): Promise<string> {
  const applied = (db && (await appliedNames(db, table))) ?? new Set<string>()
  const pending = (await pendingFiles(kind, partitioned))(applied)
  if (pending.length === 0) return ''
  const ledger = ledgerOf(table)
  const lines = [
    'begin;',
    `select pg_advisory_xact_lock(hashtextextended(${quoteText(lockName(table))}, 0));`,
    // As in migrate(): every save waits behind a statement that waits for a lock.
    `set local lock_timeout to '${LOCK_TIMEOUT_MS / 1_000}s';`,
    `create schema if not exists ${quoteName(table.schema)};`,
    `set local search_path to ${quoteName(table.schema)};`,
    `${createLedger(ledger)};`,
  ]
  for (const name of pending) {
    lines.push(`\n-- ${name}`)
    lines.push(...(await readStatements(kind, name, table.name)).map(terminated))
    lines.push(`insert into ${quoteName(ledger)} (name) values (${quoteText(name)});`)
  }
  return [...lines, '\ncommit;\n'].join('\n')
}

function terminated(statement: string): string {
  const text = statement.trim()
  return text.endsWith(';') ? text : `${text};`
}

function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
