// Back-pressure: with maxBacklog set, emit() refuses events while the table holds too many unsent ones. Counting on
// every emit would be expensive. Between counts, this process adds what it saved and subtracts what it sent. There is
// no timer, so an idle process sends no queries.
import { performance } from 'node:perf_hooks'
import { EventRefusedError } from '../errors.ts'
import type { Store } from '../store/outbox/outbox-store.ts'

/** Work of other instances shows in the next count: after a second, or after 100 ms if emit() would refuse. */
const FRESH_MS = 1_000
const FRESH_WHEN_FULL_MS = 100

export interface BacklogParts {
  readonly store: Pick<Store<never>, 'countPending'>
  readonly max: number
  /** Knows how many events of this process have ended so far. */
  readonly recorder: { readonly endedCount: number }
}

export class Backlog {
  readonly #store: BacklogParts['store']
  readonly #max: number
  readonly #recorder: BacklogParts['recorder']
  #counted = 0
  /** Saved minus ended events of this process, at the time of the count. */
  #changeAtCount = 0
  #savedCount = 0
  #countedAt = Number.NEGATIVE_INFINITY
  #counting: Promise<void> | null = null

  constructor({ store, max, recorder }: BacklogParts) {
    this.#store = store
    this.#max = max
    this.#recorder = recorder
  }

  /** Runs before a unit of work. Waits for the count only if there is none yet, or the last one would refuse events. */
  async refresh(): Promise<void> {
    const isFull = this.#countedAt === Number.NEGATIVE_INFINITY || this.#waiting >= this.#max
    const freshMs = isFull ? FRESH_WHEN_FULL_MS : FRESH_MS
    if (performance.now() - this.#countedAt < freshMs) return
    this.#counting ??= this.#count().finally(() => {
      this.#counting = null
    })
    if (isFull) await this.#counting
  }

  saved(events: number): void {
    this.#savedCount += events
  }

  /** Throws when there is no room for that many events. */
  check(count: () => number): void {
    const events = count()
    if (this.#waiting + events <= this.#max) return
    const remedy =
      events > this.#max
        ? 'emit fewer in one unit of work'
        : 'try again when the broker has caught up'
    throw new EventRefusedError(
      'BACKLOG_FULL',
      `${this.#waiting} events wait in the outbox, and ${events} more would exceed maxBacklog (${this.#max}); ${remedy}, or raise maxBacklog`,
    )
  }

  get #waiting(): number {
    return Math.max(0, this.#counted + this.#change - this.#changeAtCount)
  }

  get #change(): number {
    return this.#savedCount - this.#recorder.endedCount
  }

  // A failed count does not show the backlog. The unit of work will run into the database error itself.
  async #count(): Promise<void> {
    const before = this.#change
    try {
      this.#counted = await this.#store.countPending(this.#max + 1)
      this.#changeAtCount = before
      this.#countedAt = performance.now()
    } catch {}
  }
}
