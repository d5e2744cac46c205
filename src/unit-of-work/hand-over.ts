// What a unit of work hands over after COMMIT, and the next step as the unit of work sees it.
import { type LaneRef, type PreparedEvent, refOf } from '../event/event.ts'
import type { Lifecycle } from '../lifecycle.ts'
import type { SavedEvent } from '../store/outbox/outbox-store.ts'

/** The lease that a unit of work wrote on its events. */
export interface BirthLease {
  readonly token: string
  /** Until when, by performance.now(), no other process may take them. */
  readonly deadline: number
  readonly committedAt: number
}

export interface NextStep {
  /** Whether this process sends events at all. If not, it need not learn the outcomes of the application's transactions. */
  readonly sends: boolean
  /** Before the save: whether any pipeline would accept its whole share. If none would, all are saved without a lease. */
  takesAny(events: readonly PreparedEvent[]): boolean
  /** Only after a confirmed COMMIT. `birth` is null when the events were saved without a lease. Scheduled ones have none. */
  handOver(saved: readonly SavedEvent[], birth: BirthLease | null): void
  /** Committed scheduled events, the first of which is due in this time: has the fallback look then. */
  expect(inMs: number): void
  /** Committed without a lease: wakes the fallback for those that it could send now. */
  leave(events: readonly LaneRef[]): void
}

export function tellSaved(lifecycle: Lifecycle, saved: readonly SavedEvent[]): void {
  if (!lifecycle.hasListeners('event:saved')) return
  for (const { event } of saved) {
    lifecycle.tell('event:saved', { event: refOf(event), lane: event.lane })
  }
}

/** With relay: 'cdc' the path ends at COMMIT: a connector reads the rows from the log of the database. */
export class LeftToConnector implements NextStep {
  readonly sends = false
  readonly #lifecycle: Lifecycle

  constructor(lifecycle: Lifecycle) {
    this.#lifecycle = lifecycle
  }

  takesAny(): boolean {
    return false
  }

  handOver(saved: readonly SavedEvent[]): void {
    tellSaved(this.#lifecycle, saved)
  }

  expect(): void {}

  leave(): void {}
}
