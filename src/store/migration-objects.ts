// The names of what the migrations make, read from their files, so that a look at the database can show what is missing,
// also where the table is kept in migrations of the application's own.
import { pendingFiles, readStatements } from './migrate.ts'
import type { TableName } from './table-name.ts'

export interface MadeNames {
  readonly tables: readonly string[]
  readonly indexes: readonly string[]
  readonly functions: readonly string[]
}

const QUOTED = '"((?:[^"]|"")+)"'
const TABLE = new RegExp(`^create table (?:if not exists )?${QUOTED}`, 'gim')
const INDEX = new RegExp(`^create (?:unique )?index (?:if not exists )?${QUOTED}`, 'gim')
const DROPPED_INDEX = new RegExp(`^drop index (?:if exists )?${QUOTED}`, 'gim')
const FUNCTION = new RegExp(`^create (?:or replace )?function ${QUOTED}`, 'gim')

export async function madeByMigrations(table: TableName, partitioned: boolean): Promise<MadeNames> {
  const tables = new Set<string>()
  const indexes = new Set<string>()
  const functions = new Set<string>()
  for (const file of (await pendingFiles('outbox', partitioned))(new Set())) {
    for (const text of await readStatements('outbox', file, table.name)) {
      const statement = text.trimStart()
      for (const name of namesIn(statement, TABLE)) tables.add(name)
      for (const name of namesIn(statement, INDEX)) indexes.add(name)
      for (const name of namesIn(statement, DROPPED_INDEX)) indexes.delete(name)
      for (const name of namesIn(statement, FUNCTION)) functions.add(name)
    }
  }
  return { tables: [...tables], indexes: [...indexes], functions: [...functions] }
}

function namesIn(statement: string, pattern: RegExp): string[] {
  return [...statement.matchAll(pattern)].map(([, name]) => name!.replaceAll('""', '"'))
}
