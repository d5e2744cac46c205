// Counts the outcomes of the events of one drain().
import type { LeasedEvent } from './leased-event.ts'

export class Tally {
  delivered = 0
  failed = 0
  dead = 0

  get total(): number {
    return this.delivered + this.failed + this.dead
  }

  /** An outage is not a failure of the event, and neither is an unknown outcome. */
  count(recorded: readonly LeasedEvent[]): void {
    for (const { outcome } of recorded) {
      if (outcome?.kind === 'published') this.delivered += 1
      else if (outcome?.kind === 'dead') this.dead += 1
      else if (outcome?.kind === 'failed' && outcome.counts) this.failed += 1
    }
  }
}
