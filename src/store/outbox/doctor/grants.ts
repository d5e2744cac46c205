// What the current role may do with the tables and functions of the outbox.
import { sql } from '../../../drivers/sql.ts'
import { asArray, look, type LookContext } from './look.ts'

export interface GrantsFound {
  readonly role: string
  /** Whether the role may use what is in the schema. */
  readonly schemaUsage: boolean
  readonly tables: readonly {
    readonly name: string
    /** Of `select`, `insert`, `update` and `delete`, those that are granted. */
    readonly granted: readonly string[]
    /** Whether policies decide which rows the role sees. */
    readonly rowSecurity: boolean
  }[]
  /** Functions that the role may not call. */
  readonly uncallable: readonly string[]
}

export function grantsStatement(context: LookContext) {
  const schema = sql`(select oid from pg_namespace where nspname = ${context.table.schema}::text)`
  return (tables: readonly string[], functions: readonly string[]): Promise<GrantsFound> =>
    look(
      context,
      'look up what the role may do',
      sql`json_build_object(
        'role', current_user,
        'schemaUsage', has_schema_privilege(${schema}, 'usage'),
        'tables', ${asArray(sql`
          select c.relname as name, array(
            select act from unnest('{select,insert,update,delete}'::text[]) act
            where has_table_privilege(c.oid, act)) as granted,
            row_security_active(c.oid) as "rowSecurity"
          from ${namesOf(tables)} join pg_class c on c.relname = name and c.relnamespace = ${schema}`)},
        'uncallable', (select coalesce(json_agg(name), '[]') from ${namesOf(functions)}
          join pg_proc p on p.proname = name and p.pronamespace = ${schema}
          where not has_function_privilege(p.oid, 'execute')))`,
    )
}

function namesOf(names: readonly string[]) {
  return sql`json_array_elements_text(${JSON.stringify(names)}::text::json) as name`
}
