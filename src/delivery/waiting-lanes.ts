// Lanes in which events wait for others that are under way, in this process or another one. The fallback looks at them
// again for a while. To forget one costs time only: its events come back to the fallback by themselves.
import { performance } from 'node:perf_hooks'

/** Rule 9. */
const MOST = 10_000

/** One look takes this many, those that were looked at longest ago. */
const MOST_AT_ONCE = 1_000

/** Longer than most sends take: each round looks at them again, and a send that ends is followed by a round. */
const KEPT_MS = 60_000

export class WaitingLanes {
  readonly #until = new Map<number, number>()

  /** Returns whether any of them is new. */
  add(lanes: readonly number[]): boolean {
    const until = performance.now() + KEPT_MS
    const before = this.#until.size
    for (const lane of lanes) {
      if (this.#until.size < MOST || this.#until.has(lane)) this.#until.set(lane, until)
    }
    return this.#until.size > before
  }

  /** Some that are still worth a look. The caller puts back those that still wait. */
  take(most = MOST_AT_ONCE): ReadonlyMap<number, number> {
    const now = performance.now()
    const taken = new Map<number, number>()
    for (const [lane, until] of this.#until) {
      if (taken.size === most) break
      this.#until.delete(lane)
      if (until >= now) taken.set(lane, until)
    }
    return taken
  }

  takeAll(): number[] {
    return [...this.take(MOST).keys()]
  }

  /** As they were taken, unless they were added again meanwhile. */
  putBack(lanes: ReadonlyMap<number, number>): void {
    for (const [lane, until] of lanes) if (!this.#until.has(lane)) this.#until.set(lane, until)
  }

  remove(lanes: Iterable<number>): void {
    for (const lane of lanes) this.#until.delete(lane)
  }
}
