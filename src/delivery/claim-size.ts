// How many events the fallback claims at once. `batchSize` wins when set. Otherwise claims grow to the publisher's
// preferred size while a backlog fills them: larger claims are faster for some publishers, but if the process dies, the
// whole claim is sent again. The size of payloads is known only after a claim, so each claim goes by the one before it,
// until nothing is left.
import type { LeasedEvent } from './leased-event.ts'
import type { ResolvedOptions } from '../options/options.ts'
import type { Publisher } from '../publishers/publisher.ts'

/** The most payload in one batch: little enough to send well within a timeout. */
export const BATCH_CHARACTERS = 4_000_000

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

  /** After a claim: grows if it was full, up to what fits into one batch if later events weigh as much as these. */
  learn(batch: readonly LeasedEvent[]): void {
    const characters = batch.reduce((sum, { event }) => sum + event.payload.length, 0)
    const fitting = Math.floor((batch.length * BATCH_CHARACTERS) / characters)
    const wanted = batch.length < this.#next ? this.#next : this.#next * 2
    this.#next = Math.max(1, Math.min(wanted, fitting, this.#most))
  }

  /** When nothing is left: the next events may weigh anything. */
  reset(): void {
    this.#next = this.#first
  }

  /** After a claim that failed, or that took so long that none of its events may be sent. */
  halve(): void {
    this.#next = Math.max(1, Math.floor(this.#next / 2))
  }
}
