// Retention: deletes what has been published, or dead, for long enough. In small batches, so that nobody
// waits for it, and by one instance at a time. A crash in between costs nothing; the next round goes on.
import type { ResolvedOptions } from './options.ts'
import type { PurgeRequest, Store } from './store/store.ts'

const BATCH = 1_000

type Target = Pick<PurgeRequest, 'status' | 'olderThanMs'>

export class Cleaner {
  readonly #store: Pick<Store<never>, 'purge'>
  readonly #options: ResolvedOptions
  #round: { targets: Target[]; after: string | null; deleted: number } | null = null

  constructor(store: Pick<Store<never>, 'purge'>, options: ResolvedOptions) {
    this.#store = store
    this.#options = options
  }

  /** One batch of a round. Answers how many rows it deleted; 0 ends the round. */
  async runOnce(): Promise<number> {
    const round = (this.#round ??= { targets: this.#targets(), after: null, deleted: 0 })
    while (round.targets.length > 0) {
      const { deleted, last } = await this.#store.purge({
        ...round.targets[0]!,
        limit: BATCH,
        after: round.after,
      })
      round.deleted += deleted
      round.after = last
      if (deleted > 0) return deleted
      round.targets.shift()
    }
    this.#round = null
    if (round.deleted > 0) this.#options.logger.info({ deleted: round.deleted }, 'old rows deleted')
    return 0
  }

  #targets(): Target[] {
    const { retentionMs, deadLetterRetentionMs } = this.#options
    const published = { status: 'published', olderThanMs: retentionMs } as const
    if (deadLetterRetentionMs === null) return [published]
    return [published, { status: 'dead_letter', olderThanMs: deadLetterRetentionMs }]
  }
}
