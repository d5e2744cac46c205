// How many events the fallback claims at once. Whoever sets batchSize has said it. Else it is the publisher that says
// how many it likes to get, and claims grow to that while a backlog fills them: more is faster for some publishers, but
// goes out again if the process dies over it. What payloads weigh is known when they are there: the next claim
// goes by the last one, until nothing is left.
import type { LeasedEvent } from './leases.ts'
import type { ResolvedOptions } from './options.ts'
import type { Publisher } from './publishers/publisher.ts'
import { BATCH_CHARACTERS } from './rules.ts'

const USUAL = 250

export class ClaimSize {
  readonly #first: number
  readonly #most: number
  #next: number

  constructor(
    { batchSize }: Pick<ResolvedOptions, 'batchSize'>,
    publisher: Pick<Publisher, 'batchSize'>,
  ) {
    this.#most = batchSize ?? publisher.batchSize ?? USUAL
    this.#first = batchSize ?? Math.min(USUAL, this.#most)
    this.#next = this.#first
  }

  get next(): number {
    return this.#next
  }

  /** After a claim: more if it was full, but as many at most as make up a batch if all weigh what these do. */
  learn(batch: readonly LeasedEvent[]): void {
    const characters = batch.reduce((sum, { event }) => sum + event.payload.length, 0)
    const fitting = Math.floor((batch.length * BATCH_CHARACTERS) / characters)
    const wanted = batch.length < this.#next ? this.#next : this.#next * 2
    this.#next = Math.max(1, Math.min(wanted, fitting, this.#most))
  }

  /** When nothing is left: what comes next may weigh anything. */
  reset(): void {
    this.#next = this.#first
  }

  /** After a claim that failed, or took so long that nothing of it may be sent. */
  halve(): void {
    this.#next = Math.max(1, Math.floor(this.#next / 2))
  }
}
