// What a unit of work hands over after COMMIT, and the next step as the unit of work sees it.
import type { PreparedEvent } from '../event/event.ts'
import type { SavedEvent } from '../store/outbox/outbox-store.ts'

/** The lease that a unit of work wrote on its events. */
export interface BirthLease {
  readonly token: string
  /** Until when, by performance.now(), no other process may take them. */
  readonly deadline: number
  readonly committedAt: number
}

export interface NextStep {
  /** Before the save: whether any pipeline would accept its whole share. If none would, all are saved without a lease. */
  takesAny(events: readonly PreparedEvent[]): boolean
  /** Only after a confirmed COMMIT. `birth` is null when the events were saved without a lease. */
  handOver(saved: readonly SavedEvent[], birth: BirthLease | null): void
  /** Committed without a lease: wakes the fallback for those that it could send now. */
  leave(events: readonly PreparedEvent[]): void
}
