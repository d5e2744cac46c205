// How the doctor's statements run: each returns one JSON document as text, which every driver passes on as it is.
import type { Executor } from '../../../drivers/driver.ts'
import type { SQL } from '../../../drivers/sql.ts'
import { sql } from '../../../drivers/sql.ts'
import { type Background, run, runInBackground } from '../../database.ts'
import type { TableName } from '../../table-name.ts'

export interface LookContext extends Background {
  readonly table: TableName
  /** The table, quoted and with its schema. */
  readonly outbox: SQL
}

/** `found` is an expression of the type json. `tx`: looks in a transaction of the application, which has its own time limits. */
export async function look<T>(
  context: LookContext,
  step: string,
  found: SQL,
  tx?: Executor,
): Promise<T> {
  const query = sql`select (${found})::text as found`
  const [row] = await (tx
    ? run<{ found: string }>(tx, step, query)
    : runInBackground<{ found: string }>(context, step, query))
  return JSON.parse(row!.found) as T
}

/** The table in the catalog. By name, as to_regclass() needs a right to the schema. */
export const ownTable = ({ table }: LookContext) => sql`(
  select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = ${table.schema}::text and c.relname = ${table.name}::text)`

/** A list of rows as a JSON array. */
export const asArray = (rows: SQL) => sql`(select coalesce(json_agg(r), '[]') from (${rows}) r)`
