// Size, dead row versions and autovacuum of the table, or of each of its partitions. The numbers are Postgres's own
// estimates, kept while it runs.
import { sql } from '../../../drivers/sql.ts'
import { asArray, look, type LookContext, ownTable } from './look.ts'

export interface VacuumFound {
  /** Whether the server runs autovacuum at all. */
  readonly isOn: boolean
  readonly tables: readonly TableCondition[]
}

export interface TableCondition {
  readonly name: string
  /** With indexes and large values. */
  readonly bytes: number
  readonly heapBytes: number
  readonly indexBytes: number
  readonly live: number
  readonly dead: number
  /** Whether autovacuum is switched off for this table. */
  readonly isSwitchedOff: boolean
  /** How long ago it was last vacuumed; null: never. */
  readonly vacuumedMsAgo: number | null
}

export function vacuumStatement(context: LookContext) {
  return (): Promise<VacuumFound> =>
    look(
      context,
      'look up size and dead rows',
      sql`json_build_object(
        'isOn', current_setting('autovacuum') = 'on',
        'tables', ${asArray(sql`
          select c.relname as name, coalesce(pg_total_relation_size(c.oid), 0) as bytes,
            coalesce(pg_relation_size(c.oid), 0) as "heapBytes",
            coalesce(pg_indexes_size(c.oid), 0) as "indexBytes",
            coalesce(s.n_live_tup, 0) as live, coalesce(s.n_dead_tup, 0) as dead,
            coalesce(exists (select from unnest(c.reloptions) option
              where option in ('autovacuum_enabled=false', 'autovacuum_enabled=off', 'autovacuum_enabled=0')), false)
              as "isSwitchedOff",
            date_part('epoch', clock_timestamp() - greatest(s.last_vacuum, s.last_autovacuum)) * 1000
              as "vacuumedMsAgo"
          from pg_class c left join pg_stat_all_tables s on s.relid = c.oid
          where c.relkind = 'r' and (c.oid = ${ownTable(context)}
            or c.oid in (select inhrelid from pg_inherits where inhparent = ${ownTable(context)}))
          order by c.relname`)})`,
    )
}
