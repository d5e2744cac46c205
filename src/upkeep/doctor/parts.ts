// What the checks look at, for `aftercommit doctor` and the dashboard alike.
import type { Database } from '../../drivers/driver.ts'
import { appliedNames, pendingFiles } from '../../store/migrate.ts'
import { madeByMigrations } from '../../store/migration-objects.ts'
import { MOST_SLOT_BYTES } from '../cdc.ts'
import { LATE_MS } from '../late.ts'
import type { DoctorParts } from './finding.ts'

const LIMITS = { slotBytes: MOST_SLOT_BYTES, clockMs: 1_000, lagMs: LATE_MS }

type Opened = Pick<DoctorParts, 'store' | 'doctor' | 'preview' | 'table'> & {
  readonly db: Database<unknown>
}

export interface DoctorSettings {
  /** A transaction that is open for longer is old. */
  readonly oldTransactionMs: number
  readonly showQueries: boolean
}

export function doctorParts(
  { db, store, doctor, preview, table }: Opened,
  { oldTransactionMs, showQueries }: DoctorSettings,
): DoctorParts {
  return {
    store,
    doctor,
    preview,
    table,
    limits: { ...LIMITS, oldTransactionMs },
    showQueries,
    made: (partitioned) => madeByMigrations(table, partitioned),
    async migrations() {
      const applied = await appliedNames(db, table)
      const pending = await pendingFiles('outbox', false)
      return { applied, pending: pending(applied ?? new Set()) }
    },
  }
}
