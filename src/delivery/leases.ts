// The leases this process holds, on both paths. Queued and in-flight rows are renewed in bulk until
// their outcome is recorded, so a slow send keeps its rows and a dead process loses them by itself.
// Deadlines are local and monotonic, and count from before the statement that wrote the lease left
// this process: they always end before the database's own.
import { performance } from 'node:perf_hooks'
import type { OutboxEvent } from './events.ts'
import { isAged, isFresh } from './rules.ts'
import type { Store } from './store/store.ts'

/** An event in this process's hands. */
export interface LeasedEvent {
  readonly event: OutboxEvent
  readonly token: string
  /** When COMMIT was confirmed, on the immediate path. */
  readonly committedAt: number | null
  /** Until when, by performance.now(), nobody else may take the row. */
  deadline: number
}

/** How often renewOnce() has to run: then a held lease never falls below half of its length. */
export function renewIntervalMs(leaseMs: number): number {
  return leaseMs / 4
}

export class Leases {
  readonly #store: Pick<Store<never>, 'renew'>
  readonly #leaseMs: number
  readonly #held = new Set<LeasedEvent>()

  constructor(store: Pick<Store<never>, 'renew'>, leaseMs: number) {
    this.#store = store
    this.#leaseMs = leaseMs
  }

  get size(): number {
    return this.#held.size
  }

  hold(leased: Iterable<LeasedEvent>): void {
    for (const one of leased) this.#held.add(one)
  }

  drop(leased: Iterable<LeasedEvent>): void {
    for (const one of leased) this.#held.delete(one)
  }

  isFresh({ deadline }: LeasedEvent): boolean {
    return isFresh(deadline - performance.now(), this.#leaseMs)
  }

  /** Renews what has aged. Where that fails the old deadline stands, and ends before the lease does. */
  async renewOnce(): Promise<void> {
    const startedAt = performance.now()
    const aged = [...this.#held].filter(({ deadline }) =>
      isAged(deadline - startedAt, this.#leaseMs),
    )
    if (aged.length === 0) return
    const refs = aged.map(({ event, token }) => ({ id: event.id, token }))
    const renewed = await this.#store.renew(refs, this.#leaseMs)
    for (const one of aged) {
      if (renewed.get(one.event.id) === one.token) one.deadline = startedAt + this.#leaseMs
    }
  }
}
