// Back-pressure: with maxBacklog set, emit() refuses events while the table holds too many unsent ones. A
// count per emit would be dear: in between, this process adds what it saved and takes off what it sent. No
// timer: a process that does nothing asks nothing.
import { performance } from 'node:perf_hooks'
import { EventRefusedError } from './errors.ts'
import type { Lifecycle } from './lifecycle.ts'
import type { Store } from './store/store.ts'

/** What other instances do shows in the next count: once a second, and soon when it would be a refusal. */
const FRESH_MS = 1_000
const FRESH_WHEN_FULL_MS = 100

export class Backlog {
  readonly #store: Pick<Store<never>, 'countPending'>
  readonly #max: number | null
  #counted = 0
  /** Saved less sent, since the count. */
  #change = 0
  #countedAt = Number.NEGATIVE_INFINITY
  #counting: Promise<void> | null = null

  constructor(
    store: Pick<Store<never>, 'countPending'>,
    max: number | null,
    { events }: Pick<Lifecycle, 'events'>,
  ) {
    this.#store = store
    this.#max = max
    const gone = () => {
      this.#change -= 1
    }
    if (max !== null) events.on('event:published', gone).on('event:dead', gone)
  }

  /** Before a unit of work, which waits for the count only if it would be refused by the last one. */
  async refresh(): Promise<void> {
    if (this.#max === null) return
    const isFull = this.#countedAt === Number.NEGATIVE_INFINITY || this.#waiting >= this.#max
    const freshMs = isFull ? FRESH_WHEN_FULL_MS : FRESH_MS
    if (performance.now() - this.#countedAt < freshMs) return
    this.#counting ??= this.#count(this.#max).finally(() => {
      this.#counting = null
    })
    if (isFull) await this.#counting
  }

  saved(events: number): void {
    this.#change += events
  }

  /** Throws when there is no room for that many. */
  check(count: () => number): void {
    if (this.#max === null) return
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
    return Math.max(0, this.#counted + this.#change)
  }

  // A count that fails says nothing about the backlog; the unit of work will meet the database itself.
  async #count(max: number): Promise<void> {
    const before = this.#change
    try {
      this.#counted = await this.#store.countPending(max + 1)
      this.#change -= before
      this.#countedAt = performance.now()
    } catch {}
  }
}
