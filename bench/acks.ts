// When each event was acknowledged, noted where all contenders have to pass: in their Kafka client's send().
import { performance } from 'node:perf_hooks'

/** A message, as either client takes it. */
export interface Sent {
  readonly headers?: Readonly<Record<string, unknown>>
}

export class Acks {
  readonly #times = new Map<string, number>()
  readonly #waiters = new Set<{ count: number; resolve: () => void }>()
  lastAt = 0

  note(messages: readonly Sent[]): void {
    const now = performance.now()
    this.lastAt = now
    for (const { headers } of messages) {
      const id = String(headers?.['bench-id'])
      // The first one counts: an event is there from then on.
      if (!this.#times.has(id)) this.#times.set(id, now)
    }
    for (const waiter of this.#waiters) {
      if (this.#times.size < waiter.count) continue
      this.#waiters.delete(waiter)
      waiter.resolve()
    }
  }

  get count(): number {
    return this.#times.size
  }

  timeOf(id: string): number | undefined {
    return this.#times.get(id)
  }

  async reach(count: number): Promise<void> {
    if (this.#times.size >= count) return
    await new Promise<void>((resolve) => this.#waiters.add({ count, resolve }))
  }
}
