// Retention: deletes rows that were published, dead or handled long enough ago. It deletes in small batches, so that
// other statements do not wait, and in one instance at a time. A crash costs nothing; the next round continues.
import type { Logger } from '../runtime/logger.ts'
import type { ResolvedOptions } from '../options/options.ts'
import type { Purged, Store } from '../store/outbox/outbox-store.ts'

const BATCH = 1_000

/** Deletes one batch of old rows, starting after the last row of the previous batch; null for the first batch. */
export type PurgeBatch = (limit: number, after: string | null) => Promise<Purged>

export class Retention {
  readonly #kinds: readonly PurgeBatch[]
  readonly #logger: Logger
  #round: AsyncGenerator<number> | null = null

  constructor(kinds: readonly PurgeBatch[], logger: Logger) {
    this.#kinds = kinds
    this.#logger = logger
  }

  /** Runs one batch of the current round, or of a new one. Returns whether there is more to do. */
  async runOnce(): Promise<boolean> {
    this.#round ??= this.#runRound()
    const { done } = await this.#round.next().catch((error: unknown) => {
      this.#round = null
      throw error
    })
    if (done) this.#round = null
    return !done
  }

  /** Runs a whole round now. Returns how many rows it deleted. */
  async purge(): Promise<number> {
    let total = 0
    for await (const deleted of this.#runRound()) total += deleted
    return total
  }

  /** Yields, batch by batch, how many rows were deleted. */
  async *#runRound(): AsyncGenerator<number> {
    let total = 0
    for (const purge of this.#kinds) {
      for (let after: string | null = null; ; ) {
        const { deleted, last } = await purge(BATCH, after)
        if (deleted === 0) break
        total += deleted
        after = last
        yield deleted
      }
    }
    if (total > 0) this.#logger.info({ deleted: total }, 'old rows deleted')
  }
}

/** What an outbox deletes: published events, and dead letters if they have a retention. */
export function outboxKinds(
  store: Pick<Store<never>, 'purge'>,
  { retentionMs, deadLetterRetentionMs }: ResolvedOptions,
): PurgeBatch[] {
  const kind = (status: 'published' | 'dead_letter', olderThanMs: number): PurgeBatch => {
    return (limit, after) => store.purge({ status, olderThanMs, limit, after })
  }
  const published = kind('published', retentionMs)
  if (deadLetterRetentionMs === null) return [published]
  return [published, kind('dead_letter', deadLetterRetentionMs)]
}
