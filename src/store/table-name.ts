// Names of the schema and the table, checked once and quoted wherever they appear in SQL.
import { OutboxOptionsError } from '../errors.ts'
import { isStorable } from '../checks/storable.ts'
import { sql, type SQL } from '../drivers/sql.ts'

export interface TableName {
  readonly schema: string
  readonly name: string
}

/** Postgres silently cuts names at 63 bytes. Our longest suffix, `_dead_lane_idx`, must still fit. */
const MAX_BYTES = { schema: 63, table: 63 - '_dead_lane_idx'.length }

export function checkName(option: keyof typeof MAX_BYTES, value: unknown): string {
  const fits =
    typeof value === 'string' &&
    value !== '' &&
    isStorable(value) &&
    Buffer.byteLength(value) <= MAX_BYTES[option]
  if (fits && !value.includes('.')) return value
  if (fits) {
    throw new OutboxOptionsError(
      `${option} must be a name without a dot, got '${value}'; set schema: '...' and table: '...' separately`,
    )
  }
  throw new OutboxOptionsError(
    `${option} must be a name of 1 to ${MAX_BYTES[option]} bytes without U+0000, got ${typeof value === 'string' ? `'${value}'` : typeof value}`,
  )
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

export function qualifiedName({ schema, name }: TableName): SQL {
  return sql.raw(`${quoteName(schema)}.${quoteName(name)}`)
}

/** The name of advisory locks for this table. */
export function lockName({ schema, name }: TableName): string {
  return `aftercommit:${quoteName(schema)}.${quoteName(name)}`
}
