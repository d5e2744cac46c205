// What is in the default partition: events for whose day there was no partition. Needs the right to read that partition.
import { sql } from '../../../drivers/sql.ts'
import { qualifiedName } from '../../table-name.ts'
import { hiddenLimit } from '../rows.ts'
import { look, type LookContext } from './look.ts'

export interface DefaultPartition {
  readonly rows: number
  readonly bytes: number
}

/** `most`: rows are counted no further. */
export function defaultPartitionStatement(context: LookContext) {
  const { table } = context
  const part = qualifiedName({ ...table, name: `${table.name}_default` })
  return (most: number): Promise<DefaultPartition> =>
    look(
      context,
      'look at the default partition',
      sql`json_build_object(
        'rows', (select count(*) from (select from ${part} limit ${hiddenLimit(most)}) counted),
        'bytes', (select pg_relation_size(c.oid) from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where n.nspname = ${table.schema}::text and c.relname = ${`${table.name}_default`}::text))`,
    )
}
