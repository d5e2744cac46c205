// Transactions that have been open for long. They keep vacuum from removing dead row versions, in every table of the
// database. The text of their statement is read only on request: it may hold data.
import { sql } from '../../../drivers/sql.ts'
import { asArray, look, type LookContext } from './look.ts'
import { ageOf } from '../purge.ts'

export interface OldTransaction {
  /** null: prepared for a two-phase commit, and so without a session. */
  readonly pid: number | null
  /** The name of a prepared transaction. */
  readonly gid: string | null
  readonly ageMs: number
  readonly role: string | null
  readonly application: string | null
  readonly state: string | null
  readonly query: string | null
}

export function oldTransactionsStatement(context: LookContext) {
  return (olderThanMs: number, withQuery: boolean): Promise<readonly OldTransaction[]> => {
    const age = sql`date_part('epoch', clock_timestamp() - began) * 1000`
    return look(
      context,
      'look for old transactions',
      asArray(sql`
        select pid, gid, ${age} as "ageMs", role, application, state, query from (
          select a.pid, null as gid, a.xact_start as began, a.usename::text as role,
            a.application_name as application, a.state,
            case when ${withQuery}::boolean then a.query end as query
          from pg_stat_activity a
          where a.datname = current_database() and a.backend_type = 'client backend'
            and a.pid <> pg_backend_pid()
          union all
          select null, x.gid, x.prepared, x.owner::text, null, 'prepared', null
          from pg_prepared_xacts x where x.database = current_database()
        ) t where began < clock_timestamp() - ${ageOf(olderThanMs)} order by began limit 20`),
    )
  }
}
