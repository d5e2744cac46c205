// The topics with due events, by the last look at the table. While there is a backlog, one look serves the claims of a
// second. A look that is out of date costs time only: a round that claims nothing by it looks again.
import { performance } from 'node:perf_hooks'

const LOOK_AGAIN_MS = 1_000

export class RecentLook {
  readonly #look: () => Promise<readonly string[]>
  #topics: readonly string[] = []
  #lookedAt = Number.NEGATIVE_INFINITY
  #isBacklog = false
  #turn = 0

  constructor(look: () => Promise<readonly string[]>) {
    this.#look = look
  }

  /**
   * Each call returns the topics in another order, so that a topic with a backlog holds up no other. `isFresh` is false if
   * the topics are those of an earlier look.
   */
  async find(isWanted: (topic: string) => boolean) {
    const isRecent = performance.now() < this.#lookedAt + LOOK_AGAIN_MS
    const isFresh = !(this.#isBacklog && isRecent && this.#topics.some(isWanted))
    if (isFresh) {
      this.#lookedAt = performance.now()
      this.#topics = await this.#look()
    }
    const first = this.#turn++ % Math.max(1, this.#topics.length)
    return { topics: [...this.#topics.slice(first), ...this.#topics.slice(0, first)], isFresh }
  }

  /** After a claim of what is due: whether it took as many events as it could. */
  learn(isFull: boolean): void {
    this.#isBacklog = isFull
  }
}
