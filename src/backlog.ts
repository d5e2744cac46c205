// Back-pressure: with maxBacklog set, emit() refuses events while the table holds too many unsent ones. A
// count per emit would be dear, so it is taken at most once a second, and this process adds what it saved
// since. No timer: a process that does nothing asks nothing.
import { performance } from 'node:perf_hooks'
import { EventRefusedError } from './errors.ts'
import type { Store } from './store/store.ts'

const FRESH_MS = 1_000

export class Backlog {
  readonly #store: Pick<Store<never>, 'countPending'>
  readonly #max: number | null
  #counted = 0
  #savedSince = 0
  #countedAt = Number.NEGATIVE_INFINITY
  #counting: Promise<void> | null = null

  constructor(store: Pick<Store<never>, 'countPending'>, max: number | null) {
    this.#store = store
    this.#max = max
  }

  /** Before a unit of work. Only the first one ever waits for the count. */
  async refresh(): Promise<void> {
    if (this.#max === null || performance.now() - this.#countedAt < FRESH_MS) return
    const first = this.#countedAt === Number.NEGATIVE_INFINITY
    this.#counting ??= this.#count(this.#max).finally(() => {
      this.#counting = null
    })
    if (first) await this.#counting
  }

  saved(events: number): void {
    this.#savedSince += events
  }

  /** Throws when there is no room for that many. */
  check(events: number): void {
    if (this.#max === null) return
    const waiting = this.#counted + this.#savedSince
    if (waiting + events <= this.#max) return
    throw new EventRefusedError(
      'BACKLOG_FULL',
      `${waiting} events wait in the outbox, and ${events} more would exceed maxBacklog (${this.#max}); try again when the broker has caught up, or raise maxBacklog`,
    )
  }

  // A count that fails says nothing about the backlog; the unit of work will meet the database itself.
  async #count(max: number): Promise<void> {
    const before = this.#savedSince
    try {
      this.#counted = await this.#store.countPending(max + 1)
      this.#savedSince -= before
      this.#countedAt = performance.now()
    } catch {}
  }
}
