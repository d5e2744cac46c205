// What a check of the doctor reports: something that is wrong, or will be, with what to do about it.
import type { DoctorStore } from '../../store/outbox/doctor/doctor-store.ts'
import type { ServerFound } from '../../store/outbox/doctor/server.ts'
import type { ControlStore } from '../../store/outbox/control-store.ts'
import type { PreviewStore } from '../../store/outbox/preview/preview-store.ts'
import type { Store } from '../../store/outbox/outbox-store.ts'
import type { MadeNames } from '../../store/migration-objects.ts'
import type { TableName } from '../../store/table-name.ts'

/** `error`: events are not delivered, or soon will not be. `warning`: needs a person. `info`: good to know. */
type Severity = 'error' | 'warning' | 'info'

/** What it is about, for a tool that has words and places of its own for it. */
export type FindingKind =
  | 'circuit'
  | 'dead'
  | 'history'
  | 'lag'
  | 'lost-instance'
  | 'no-instance'
  | 'paused'
  | 'unrouted'

export interface Finding {
  readonly check: string
  readonly kind?: FindingKind
  readonly severity: Severity
  readonly message: string
  /** What to do about it; null where there is nothing to do. */
  readonly remedy: string | null
}

export type Found = Omit<Finding, 'check'>

/** A check that could not be made, or not wholly, and why. */
export interface SkippedCheck {
  readonly check: string
  readonly reason: string
}

interface DoctorLimits {
  readonly oldTransactionMs: number
  /** WAL that a slot may hold. */
  readonly slotBytes: number
  readonly clockMs: number
  readonly lagMs: number
}

/** What the checks look at. */
export interface DoctorParts {
  readonly store: Pick<
    Store<never>,
    'verify' | 'partitions' | 'countUnrouted' | 'countDeadLetters' | 'stats'
  > & { readonly control: ControlStore }
  readonly doctor: DoctorStore
  readonly preview: Pick<PreviewStore, 'countOld'>
  readonly table: TableName
  /** Which migrations are applied and which are not; `applied` is null where migrate() has never run. */
  readonly migrations: () => Promise<{
    readonly applied: ReadonlySet<string> | null
    readonly pending: readonly string[]
  }>
  /** What the migrations of a plain or of a partitioned table make. */
  readonly made: (partitioned: boolean) => Promise<MadeNames>
  readonly limits: DoctorLimits
  /** Whether findings include the text of statements, which may hold data. */
  readonly showQueries: boolean
}

/** What the checks that come later may rely on. */
export interface Known {
  readonly server: ServerFound
  readonly isPartitioned: boolean
}

export interface Check {
  readonly name: string
  /** Whether it reads the events themselves, which a lock on their table prevents. */
  readonly readsEvents?: true
  /** Calls `skip` for what it could not look at. */
  run(parts: DoctorParts, known: Known, skip: (reason: string) => void): Promise<Found[]>
}
