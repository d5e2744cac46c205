// Retention: deletes what has been published, or dead, for long enough. In small batches, so that nobody
// waits for it, and by one instance at a time. A crash in between costs nothing; the next round goes on.
import type { ResolvedOptions } from './options.ts'
import type { PurgeRequest, Store } from './store/store.ts'

const BATCH = 1_000

export class Cleaner {
  readonly #store: Pick<Store<never>, 'purge'>
  readonly #options: ResolvedOptions
  #round: AsyncGenerator<number> | null = null

  constructor(store: Pick<Store<never>, 'purge'>, options: ResolvedOptions) {
    this.#store = store
    this.#options = options
  }

  /** One batch of the round under way, or of a new one. Answers whether there is more to do. */
  async runOnce(): Promise<boolean> {
    this.#round ??= this.runRound()
    const { done } = await this.#round.next().catch((error: unknown) => {
      this.#round = null
      throw error
    })
    if (done) this.#round = null
    return !done
  }

  /** Answers, batch by batch, how many rows it deleted. */
  async *runRound(): AsyncGenerator<number> {
    let total = 0
    for (const target of this.#targets()) {
      for (let after: string | null = null; ; ) {
        const { deleted, last } = await this.#store.purge({ ...target, limit: BATCH, after })
        if (deleted === 0) break
        total += deleted
        after = last
        yield deleted
      }
    }
    if (total > 0) this.#options.logger.info({ deleted: total }, 'old rows deleted')
  }

  #targets(): Pick<PurgeRequest, 'status' | 'olderThanMs'>[] {
    const { retentionMs, deadLetterRetentionMs } = this.#options
    const published = { status: 'published', olderThanMs: retentionMs } as const
    if (deadLetterRetentionMs === null) return [published]
    return [published, { status: 'dead_letter', olderThanMs: deadLetterRetentionMs }]
  }
}
