// Whether the server writes what a connector has to read, and how far it has read: one statement, which any role may run.
import type { Executor } from '../../../drivers/driver.ts'
import { sql } from '../../../drivers/sql.ts'
import { look, type LookContext, ownTable } from '../doctor/look.ts'
import { type CdcNames, cdcNames } from './names.ts'

export interface CdcFound {
  readonly names: CdcNames
  /** Such as 170002. */
  readonly version: number
  readonly walLevel: string
  readonly publication: {
    readonly isInsertOnly: boolean
    readonly isOfRoot: boolean
    readonly hasTable: boolean
    /** Whether rows that this library relays itself are left out. */
    readonly isFiltered: boolean
  } | null
  readonly slot: {
    readonly isActive: boolean
    /** WAL that was written and that the connector has not confirmed. */
    readonly unreadBytes: number
    /** WAL that the server keeps for the slot: more than is unread, while a transaction is open that began before that. */
    readonly heldBytes: number
    /** WAL that may still be written before the server removes some that the slot needs; null: it removes none. */
    readonly safeBytes: number | null
    /** `lost`: the server has removed WAL that the slot needs. */
    readonly walStatus: string | null
  } | null
}

type FoundSlot = NonNullable<CdcFound['slot']> & { readonly name: string }
type FoundPublication = NonNullable<CdcFound['publication']> & { readonly name: string }
type Read = Pick<CdcFound, 'version' | 'walLevel'> & {
  readonly database: string
  readonly publications: readonly FoundPublication[]
  readonly slots: readonly FoundSlot[]
}

/** `tx`: looks in a transaction of the application. */
export type CdcLook = (tx?: Executor) => Promise<CdcFound>

// All publications and slots of the database are read, because their names depend on its name. There are few of either. As
// JSON, row filters need no column that older servers do not have.
export function cdcStatement(context: LookContext): CdcLook {
  const table = ownTable(context)
  return async (tx) => {
    const { database, publications, slots, ...server } = await look<Read>(
      context,
      'look at publication and slot',
      sql`json_build_object(
        'database', current_database(),
        'version', current_setting('server_version_num')::int,
        'walLevel', current_setting('wal_level'),
        'publications', (select coalesce(json_agg(json_build_object('name', p.pubname,
            'isInsertOnly', p.pubinsert and not (p.pubupdate or p.pubdelete or p.pubtruncate),
            'isOfRoot', p.pubviaroot, 'hasTable', r.oid is not null or p.puballtables,
            'isFiltered', coalesce(to_jsonb(r)->>'prqual' is not null, false))), '[]')
          from pg_publication p left join pg_publication_rel r on r.prpubid = p.oid and r.prrelid = ${table}),
        'slots', (select coalesce(json_agg(json_build_object('name', s.slot_name, 'isActive', s.active,
            'walStatus', s.wal_status, 'safeBytes', s.safe_wal_size,
            'unreadBytes', coalesce(pg_wal_lsn_diff(w.lsn, s.confirmed_flush_lsn), 0)::float8,
            'heldBytes', coalesce(pg_wal_lsn_diff(w.lsn, s.restart_lsn), 0)::float8)), '[]')
          from pg_replication_slots s cross join (select
            case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end as lsn) w
          where s.database = current_database()))`,
      tx,
    )
    const names = cdcNames(database, context.table)
    const publication = publications.find(({ name }) => name === names.publication) ?? null
    const slot = slots.find(({ name }) => name === names.slot) ?? null
    return { names, ...server, publication, slot }
  }
}
