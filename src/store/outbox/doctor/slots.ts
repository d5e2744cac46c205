// Replication slots and the WAL that each makes the server keep. A forgotten slot fills the disk, and one with an xmin
// keeps vacuum from removing dead row versions.
import { sql } from '../../../drivers/sql.ts'
import { asArray, look, type LookContext } from './look.ts'

export interface SlotFound {
  readonly name: string
  readonly isActive: boolean
  readonly heldBytes: number
  /** Whether it also keeps dead row versions. */
  readonly holdsRows: boolean
  /** `lost`: the server has removed WAL that the slot needs. */
  readonly walStatus: string | null
}

export function slotsStatement(context: LookContext) {
  return (): Promise<readonly SlotFound[]> =>
    look(
      context,
      'look at replication slots',
      asArray(sql`
        select s.slot_name as name, s.active as "isActive", s.xmin is not null as "holdsRows",
          s.wal_status as "walStatus",
          coalesce(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn()
            else pg_current_wal_lsn() end, s.restart_lsn), 0)::float8 as "heldBytes"
        from pg_replication_slots s order by s.slot_name`),
    )
}
