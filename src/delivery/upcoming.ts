// The time at which the next scheduled event is due, as far as this process knows: from its looks at the table, and from what
// it saved. The fallback sleeps no longer than that. A wrong time costs a look, or a wait until the next poll.
import { performance } from 'node:perf_hooks'

/** A timer may fire a millisecond early, and the look would come too soon. */
const MARGIN_MS = 1

export class Upcoming {
  #at = Number.POSITIVE_INFINITY

  /** An event is due in this time. */
  expect(inMs: number): void {
    this.#at = Math.min(this.#at, performance.now() + inMs + MARGIN_MS)
  }

  /** How long the fallback may sleep. */
  get inMs(): number {
    return Math.max(0, this.#at - performance.now())
  }

  /** A round begins. What it is due for need not be remembered, whether or not the round may look. */
  forgetPast(): void {
    if (this.#at <= performance.now()) this.#at = Number.POSITIVE_INFINITY
  }
}
