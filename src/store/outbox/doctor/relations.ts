// Which of the tables, indexes and functions that the migrations make are there. Catalogs only, which every role may read.
import { sql } from '../../../drivers/sql.ts'
import type { MadeNames } from '../../migration-objects.ts'
import { encodeArray } from '../rows.ts'
import { asArray, look, type LookContext, ownTable } from './look.ts'

export interface RelationsFound {
  /** `r`: a plain table, `p`: a partitioned one, null: there is none. */
  readonly kind: string | null
  readonly tables: readonly string[]
  readonly functions: readonly string[]
  readonly indexes: readonly { readonly name: string; readonly isValid: boolean }[]
}

export function relationsStatement(context: LookContext) {
  const inSchema = sql`(select oid from pg_namespace where nspname = ${context.table.schema}::text)`
  return ({ tables, indexes, functions }: MadeNames): Promise<RelationsFound> =>
    look(
      context,
      'look for tables, indexes and functions',
      sql`json_build_object(
        'kind', (select relkind from pg_class where oid = ${ownTable(context)}),
        'tables', array(select relname::text from pg_class where relnamespace = ${inSchema}
          and relkind in ('r', 'p') and relname = any (${encodeArray(tables)}::text::text[])),
        'functions', array(select proname::text from pg_proc where pronamespace = ${inSchema}
          and proname = any (${encodeArray(functions)}::text::text[])),
        'indexes', ${asArray(sql`
          select c.relname as name, i.indisvalid and i.indisready as "isValid"
          from pg_class c join pg_index i on i.indexrelid = c.oid
          where c.relnamespace = ${inSchema} and c.relname = any (${encodeArray(indexes)}::text::text[])`)})`,
    )
}
