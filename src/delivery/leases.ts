// The events that this process holds, on both paths, and their leases. Queued and in-flight rows are renewed in bulk
// until their outcome is recorded: a slow send keeps its rows, and a dead process loses them automatically. Deadlines
// are local and monotonic, and count from before the statement that wrote the lease was sent, so they end before the
// database's, unless the whole machine sleeps.
import { performance } from 'node:perf_hooks'
import type { Store } from '../store/outbox/outbox-store.ts'
import type { LeasedEvent } from './leased-event.ts'

/** How often renewOnce() runs, so that a held lease stays at about half of its length or more. */
export function renewIntervalMs(leaseMs: number): number {
  return leaseMs / 4
}

/** Rule 4: with half of the lease or less left, no send may begin. The row is left to the fallback. */
export function isFresh(leftMs: number, leaseMs: number): boolean {
  return leftMs > leaseMs / 2
}

/** Rule 5: from this age on a held lease is renewed, early enough that it stays fresh unless a renewal is late. */
export function isAged(leftMs: number, leaseMs: number): boolean {
  return leftMs < leaseMs * 0.75
}

export class Leases {
  readonly #store: Pick<Store<never>, 'renew'>
  readonly #leaseMs: number
  readonly #taken = new Set<LeasedEvent>()

  constructor(store: Pick<Store<never>, 'renew'>, leaseMs: number) {
    this.#store = store
    this.#leaseMs = leaseMs
  }

  get size(): number {
    return this.#taken.size
  }

  /** All that are held now, on both paths. */
  held(): Iterable<LeasedEvent> {
    return this.#taken
  }

  /** Renews these leases from here on. Each path drops what it has taken. */
  take(leased: Iterable<LeasedEvent>): void {
    for (const one of leased) this.#taken.add(one)
  }

  /** Renews them no more. The rows themselves are freed by their record, or when the lease ends. */
  drop(leased: Iterable<LeasedEvent>): void {
    for (const one of leased) this.#taken.delete(one)
  }

  isFresh({ deadline }: LeasedEvent): boolean {
    return isFresh(deadline - performance.now(), this.#leaseMs)
  }

  /** Renews aged leases. If that fails, the old deadline stays, and it ends before the lease does. */
  async renewOnce(): Promise<void> {
    const startedAt = performance.now()
    const aged = [...this.#taken].filter(({ deadline }) =>
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
