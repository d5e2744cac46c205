// How many events the fallback claims at once. Whoever sets batchSize has said it. Else it is the publisher that says
// how many it likes to get, and claims grow to that while a backlog fills them: more is faster for some publishers, but
// goes out again if the process dies over it. What payloads weigh is known when they are there: the next claim
// goes by the last one.
import type { LeasedEvent } from './leases.ts'
import type { ResolvedOptions } from './options.ts'
import type { Publisher } from './publishers/publisher.ts'
import { BATCH_CHARACTERS } from './rules.ts'

const USUAL = 250

export class ClaimSize {
  readonly #most: number
  #next: number

  constructor(
    { batchSize }: Pick<ResolvedOptions, 'batchSize'>,
    publisher: Pick<Publisher, 'batchSize'>,
  ) {
    this.#most = batchSize ?? publisher.batchSize ?? USUAL
    this.#next = batchSize ?? Math.min(USUAL, this.#most)
  }

  get next(): number {
    return this.#next
  }

  /** After a claim: was it full, and is it more than a batch may weigh? */
  learn(batch: readonly LeasedEvent[]): void {
    const characters = batch.reduce((sum, { event }) => sum + event.payload.length, 0)
    const fitting = Math.floor(batch.length * (BATCH_CHARACTERS / characters))
    const wanted = batch.length < this.#next ? this.#next : this.#next * 2
    this.#next = Math.max(1, Math.min(wanted, fitting, this.#most))
  }

  /** After a claim that took so long that nothing of it may be sent. */
  halve(): void {
    this.#next = Math.max(1, Math.floor(this.#next / 2))
  }
}
