// How many events the fallback claims at once. A backlog drains faster in large claims: 1.6 times as fast by 1,000 as by
// 250. But each of them is memory, goes out again if the process dies over it, and has to be sent within a timeout. So
// claims grow while they come back full, and shrink when they turn out heavy or slow.
import { BATCH_CHARACTERS } from './delivery.ts'
import type { LeasedEvent } from './leases.ts'

/** While nobody knows what the payloads weigh; and what one claim may always have, however long each event takes. */
const FIRST = 250

export class ClaimSize {
  readonly #most: number
  readonly #sendMs: number
  #next: number

  /** `sendMs`: what the sending of one claim should take at most. */
  constructor(most: number, sendMs: number) {
    this.#most = most
    this.#sendMs = sendMs
    this.#next = Math.min(FIRST, most)
  }

  get next(): number {
    return this.#next
  }

  /** Told of each claim that was sent: how many events it could have taken, and how long the send took. */
  learn(batch: readonly LeasedEvent[], limit: number, tookMs: number): void {
    const characters = batch.reduce((sum, { event }) => sum + event.payload.length, 0)
    const light = batch.length * (BATCH_CHARACTERS / characters)
    const quick = Math.max(FIRST, batch.length * (this.#sendMs / tookMs))
    const wanted = batch.length < limit ? this.#next : Math.max(this.#next, batch.length * 2)
    this.#next = Math.max(1, Math.floor(Math.min(this.#most, wanted, light, quick)))
  }
}
