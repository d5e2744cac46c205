// Retention: deletes what has been published, dead or handled for long enough. In small batches, so that nobody
// waits for it, and by one instance at a time. A crash in between costs nothing; the next round goes on.
import type { Logger } from './logger.ts'
import type { ResolvedOptions } from './options.ts'
import type { Purged, Store } from './store/store.ts'

const BATCH = 1_000

/** Deletes one batch of what is old, from where the last one ended; null for the first. */
export type PurgeBatch = (limit: number, after: string | null) => Promise<Purged>

export class Cleaner {
  readonly #kinds: readonly PurgeBatch[]
  readonly #logger: Logger
  #round: AsyncGenerator<number> | null = null

  constructor(kinds: readonly PurgeBatch[], logger: Logger) {
    this.#kinds = kinds
    this.#logger = logger
  }

  /** One batch of the round under way, or of a new one. Answers whether there is more to do. */
  async runOnce(): Promise<boolean> {
    this.#round ??= this.#runRound()
    const { done } = await this.#round.next().catch((error: unknown) => {
      this.#round = null
      throw error
    })
    if (done) this.#round = null
    return !done
  }

  /** A whole round, now. Answers how many rows it deleted. */
  async purge(): Promise<number> {
    let total = 0
    for await (const deleted of this.#runRound()) total += deleted
    return total
  }

  /** Answers, batch by batch, how many rows it deleted. */
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

/** What an outbox cleans up: published events, and dead letters if they have a retention. */
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
