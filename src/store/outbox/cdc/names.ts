// The names that the connector and the checks agree on. A publication belongs to a database, a slot to the whole server,
// so the slot's name includes the database. Slots allow only a-z, 0-9 and _, and Postgres cuts names at 63 bytes.
import { hash } from 'node:crypto'
import type { TableName } from '../../table-name.ts'

const MAX_LENGTH = 63
const HASH_LENGTH = 8

export interface CdcNames {
  readonly publication: string
  /** The name of the replication slot, and of the connector. */
  readonly slot: string
}

export function cdcNames(database: string, { schema, name }: TableName): CdcNames {
  return {
    publication: plainName(['aftercommit', schema, name]),
    slot: plainName(['aftercommit', database, schema, name]),
  }
}

/** The hash keeps names apart that only differ in what is replaced or cut off. */
function plainName(parts: readonly string[]): string {
  const plain = parts.join('_').replaceAll(/[^a-z0-9_]/g, '_')
  const isExact = parts.every((part) => /^[a-z0-9]+$/.test(part)) && plain.length <= MAX_LENGTH
  if (isExact) return plain
  const suffix = hash('sha256', parts.join('\0')).slice(0, HASH_LENGTH)
  return `${plain.slice(0, MAX_LENGTH - HASH_LENGTH - 1)}_${suffix}`
}
