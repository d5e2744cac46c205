// One event on its way through the delivery, from the hand-over or the claim to its record. Every step works on this
// object; no step copies it.
import type { OutboxEvent } from '../event/event.ts'
import type { PublishSuccess } from '../event/publish-result.ts'
import type { Path } from '../lifecycle.ts'

/** The outcome of an event, as far as this process knows. */
export type Outcome =
  | {
      readonly kind: 'published'
      readonly success: PublishSuccess
      readonly latencyMs: number | null
    }
  | {
      readonly kind: 'failed'
      readonly error: Error
      /** Whether this failure counts as an attempt. */
      readonly counts: boolean
      readonly retryInMs: number
    }
  /** The last attempt is counted too. */
  | { readonly kind: 'dead'; readonly error: Error }
  /** Not tried: given back as it was. */
  | { readonly kind: 'untried' }
  /** Past its publishTimeout: it may have gone out, and nothing is recorded. */
  | { readonly kind: 'unknown' }

/** One event, from the hand-over or the claim to its record. */
export interface LeasedEvent {
  readonly event: OutboxEvent
  readonly token: string
  readonly path: Path
  /** When COMMIT was confirmed, on the immediate path. */
  readonly committedAt: number | null
  /** Until when, by performance.now(), no other process may take the row. */
  deadline: number
  /** null while the event waits or is under way. */
  outcome: Outcome | null
}
