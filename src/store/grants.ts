// Exactly what each kind of role may do with the tables of an outbox. `aftercommit grants` prints these rights, the doctor
// compares a role with them, and the suite runs with them.
import { quoteName, type TableName } from './table-name.ts'

export type Act = 'select' | 'insert' | 'update' | 'delete'
type Table = 'outbox' | 'pauses' | 'instances'

const READ: readonly Act[] = ['select']
const CHANGE: readonly Act[] = ['select', 'update', 'delete']
const ALL: readonly Act[] = ['select', 'insert', 'update', 'delete']

/** Each purpose and what it may do, the most common one first. */
export const RIGHTS = {
  /** An application that also runs the fallback and the cleanup, as it does by default. */
  service: { outbox: ALL, pauses: READ, instances: ALL },
  /** One with `poller: false` and `cleanup: false`. */
  application: { outbox: ['select', 'insert', 'update'], pauses: READ, instances: ALL },
  /** A process that runs the fallback and the cleanup, and saves nothing. */
  relay: { outbox: CHANGE, pauses: READ, instances: ALL },
  /** Retries, discards, redacts, pauses and purges. */
  operator: { outbox: CHANGE, pauses: ['select', 'insert', 'delete'], instances: READ },
  /** Only looks. */
  reader: { outbox: READ, pauses: READ, instances: READ },
} as const satisfies Record<string, Record<Table, readonly Act[]>>

export type Purpose = keyof typeof RIGHTS
export const PURPOSES = Object.keys(RIGHTS) as Purpose[]

/** The name of one of the tables. */
export function tableNameOf({ name }: TableName, table: Table): string {
  return table === 'outbox' ? name : `${name}_${table}`
}

/** Statements for a role that exists. They can be run again. */
export function grantsScript(table: TableName, role: string, purpose: Purpose): string {
  const schema = quoteName(table.schema)
  const to = `to ${quoteName(role)};`
  const named = (name: string) => `${schema}.${quoteName(name)}`
  const lines = [`grant usage on schema ${schema} ${to}`]
  for (const [key, acts] of Object.entries(RIGHTS[purpose]) as [Table, readonly Act[]][]) {
    lines.push(`grant ${acts.join(', ')} on ${named(tableNameOf(table, key))} ${to}`)
  }
  lines.push(`grant select on ${named(`${table.name}_migrations`)} ${to}`)
  const follows = `${named(`${table.name}_follows`)}(bigint, bigint, boolean)`
  if (RIGHTS[purpose].instances !== READ) lines.push(`grant execute on function ${follows} ${to}`)
  // For the doctor: transactions of other roles.
  else lines.push(`grant pg_read_all_stats ${to}`)
  return `${lines.join('\n')}\n`
}

/** For the role that runs migrations. It owns what it makes, so later migrations need the same role, or a member of it. */
export function migrationGrants({ schema }: TableName, role: string): string {
  return `grant usage, create on schema ${quoteName(schema)} to ${quoteName(role)};\n`
}
