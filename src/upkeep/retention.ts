// Retention: deletes rows that were published, dead or handled long enough ago. It deletes in small batches, so that
// other statements do not wait, and in one instance at a time. A crash costs nothing; the next round continues.
import type { Logger } from '../runtime/logger.ts'
import type { ResolvedOptions } from '../options/options.ts'
import type { Purged, Store } from '../store/outbox/outbox-store.ts'
import { type DoneBy, doneBy } from './done-by.ts'
import { Partitions } from './partitions.ts'

const BATCH = 1_000
const DAY_MS = 86_400_000

/** On a partitioned table, rows that did not go with their partition go this much later. */
export const LATER_WITH_PARTITIONS_MS = 2 * DAY_MS

/** Deletes one batch of old rows, starting after the last row of the previous batch; null for the first batch. */
export type PurgeBatch = (limit: number, after: string | null) => Promise<Purged>

/** One round. Yields, step by step, how many rows were deleted. */
export type Round = () => AsyncGenerator<number>

export class Retention {
  readonly #newRound: Round
  readonly #logger: Logger
  #round: AsyncGenerator<number> | null = null

  constructor(newRound: Round, logger: Logger) {
    this.#newRound = newRound
    this.#logger = logger
  }

  /** Runs one step of the current round, or of a new one. Returns whether there is more to do. */
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
  async purge(details: DoneBy = {}): Promise<number> {
    let total = 0
    for await (const deleted of this.#runRound(doneBy('purge()', details))) total += deleted
    return total
  }

  async *#runRound(who: { readonly by?: string } = {}): AsyncGenerator<number> {
    let total = 0
    try {
      for await (const deleted of this.#newRound()) {
        total += deleted
        yield deleted
      }
    } finally {
      if (total > 0) this.#logger.info({ deleted: total, ...who }, 'old rows deleted')
    }
  }
}

export async function* inBatches(purge: PurgeBatch): AsyncGenerator<number> {
  for (let after: string | null = null; ; ) {
    const { deleted, last } = await purge(BATCH, after)
    if (deleted === 0) return
    after = last
    yield deleted
  }
}

export type RetentionRules = Pick<
  ResolvedOptions,
  'retentionMs' | 'deadLetterRetentionMs' | 'logger'
>

/**
 * What an outbox deletes: dead letters if they have a retention, and published events. With partitions, these go with
 * their partition, which covers a day. A partition has at least another day to be dropped; what is still there then,
 * because something in it stays, goes in batches, and so does what is in the default partition.
 */
export function outboxRound(
  store: Pick<Store<never>, 'purge' | 'partitions'>,
  { retentionMs, deadLetterRetentionMs, logger }: RetentionRules,
): Round {
  const partitions = new Partitions(store.partitions, retentionMs, logger)
  const purge = (status: 'published' | 'dead_letter', olderThanMs: number) => {
    return inBatches((limit, after) => store.purge({ status, olderThanMs, limit, after }))
  }
  return async function* () {
    const found = await partitions.find()
    if (found) await partitions.make(found)
    if (deadLetterRetentionMs !== null) yield* purge('dead_letter', deadLetterRetentionMs)
    if (found && !(yield* partitions.drop(found))) return
    yield* purge('published', found ? retentionMs + LATER_WITH_PARTITIONS_MS : retentionMs)
  }
}
