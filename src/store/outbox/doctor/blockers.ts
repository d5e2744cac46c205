// Which sessions keep others from reading the tables of the outbox. A session that waits for an exclusive lock itself also
// makes all later ones wait, so the sessions at the head of the queue are named: ending those helps. Of a statement only the
// first words are read, up to the first literal, so that no data is.
import { sql } from '../../../drivers/sql.ts'
import { encodeArray } from '../rows.ts'
import { asArray, look, type LookContext, ownTable } from './look.ts'

export interface Blocker {
  /** null: prepared for a two-phase commit, and so without a session. */
  readonly pid: number | null
  /** The name of a prepared transaction. */
  readonly gid: string | null
  /** How long its transaction has been open; null: the role may not see that. */
  readonly ageMs: number | null
  readonly role: string | null
  readonly application: string | null
  readonly state: string | null
  /** The first words of its last statement, such as `alter table outbox`. */
  readonly statement: string | null
  /** If it does not lock the table itself: the session that waits to do so, and makes all later ones wait. */
  readonly firstWaiting: Waiting | null
}

type Waiting = Pick<Blocker, 'role' | 'application' | 'statement'> & { readonly pid: number }

/** Words without quotes, digits or operators: neither literals nor comments. */
const FIRST_WORDS = String.raw`^\s*((?:[[:alpha:]_."]+\s+){0,2}[[:alpha:]_."]+)`
const COMMENTS = String.raw`/\*.*?\*/`

const firstWords = (session: 'a' | 'w') =>
  sql`substring(regexp_replace(${sql.raw(session)}.query, ${COMMENTS}::text, '', 'g') from ${FIRST_WORDS}::text)`

export function blockersStatement(context: LookContext) {
  const { schema, name } = context.table
  const others = ['instances', 'pauses', 'migrations'].map((suffix) => `${name}_${suffix}`)
  return (): Promise<readonly Blocker[]> =>
    look(
      context,
      'look for sessions that lock the table',
      asArray(sql`
        with recursive locked as (
          select l.pid, l.virtualtransaction, l.granted from pg_locks l
          where l.locktype = 'relation' and l.mode = 'AccessExclusiveLock'
            and l.database = (select oid from pg_database where datname = current_database())
            and l.relation in (
              select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
              where n.nspname = ${schema}::text and c.relname = any (${encodeArray([name, ...others])}::text::text[])
              union select inhrelid from pg_inherits where inhparent = ${ownTable(context)})
        ), chain as (
          select pid from locked where pid is not null
          union
          select unnest(pg_blocking_pids(pid)) from chain where pid <> 0
        )
        select a.pid, null as gid, date_part('epoch', clock_timestamp() - a.xact_start) * 1000 as "ageMs",
          a.usename::text as role, nullif(a.application_name, '') as application, a.state,
          ${firstWords('a')} as statement,
          (select json_build_object('pid', w.pid, 'role', w.usename::text,
              'application', nullif(w.application_name, ''), 'statement', ${firstWords('w')})
            from locked l join pg_stat_activity w on w.pid = l.pid
            where not l.granted and not exists (select from locked own where own.pid = a.pid and own.granted)
              and a.pid = any (pg_blocking_pids(w.pid))
            order by w.query_start limit 1) as "firstWaiting"
        from pg_stat_activity a
        where a.pid in (select pid from chain) and cardinality(pg_blocking_pids(a.pid)) = 0
        union all
        select null, x.gid, date_part('epoch', clock_timestamp() - x.prepared) * 1000, x.owner::text, null, 'prepared', null, null
        from pg_prepared_xacts x join locked l
          on l.pid is null and split_part(l.virtualtransaction, '/', 2) = x.transaction::text
        limit 20`),
    )
}
