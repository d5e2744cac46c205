// Keeps the partitions of a table that has them: makes those of the days to come, and drops those in which every row is
// published and past its retention. Where that fails, events go into the default partition, and old rows go in batches
// (see retention.ts). A crash costs nothing; the next round continues.
import { isLocked } from '../store/database.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Partition, PartitionsFound, PartitionStore } from '../store/outbox/outbox-store.ts'

export class Partitions {
  readonly #store: PartitionStore
  readonly #retentionMs: number
  readonly #logger: Logger
  #hasWarned = false

  constructor(store: PartitionStore, retentionMs: number, logger: Logger) {
    this.#store = store
    this.#retentionMs = retentionMs
    this.#logger = logger
  }

  /** null: the table has none. */
  async find(): Promise<PartitionsFound | null> {
    const found = await this.#store.find(this.#retentionMs)
    if (!found || found.isOwner) return found
    if (!this.#hasWarned) {
      this.#logger.warn(
        {},
        "this role may not make or drop the table's partitions, so events go into the default one and old rows are deleted one by one; let the owner of the table call outbox.purge() every day, or make this role the owner",
      )
    }
    this.#hasWarned = true
    return { ...found, missing: [], old: [] }
  }

  async make({ missing }: PartitionsFound): Promise<void> {
    try {
      for (const day of missing) {
        if (await this.#store.make(day)) this.#logger.info({ day }, 'partition made')
      }
    } catch (error) {
      this.#explain(error, 'could not make a partition; the next round tries again')
    }
  }

  /**
   * Drops what is old. Yields how many rows went, and 0 while it looks at them. Returns whether it was this instance's
   * turn until the end.
   */
  async *drop({ old }: PartitionsFound): AsyncGenerator<number, boolean> {
    for (const partition of old) {
      try {
        const rows = yield* this.#countOld(partition)
        if (rows === 'some stay') continue
        const isDropped = rows === null ? null : await this.#store.drop(partition)
        if (rows === null || isDropped === null) return false
        if (!isDropped) continue
        this.#logger.info({ partition: partition.name, rows }, 'partition dropped')
        yield rows
      } catch (error) {
        this.#explain(
          error,
          'could not drop a partition; the next round tries again',
          partition.name,
        )
      }
    }
    return true
  }

  /** Looks at every row, a part at a time, and counts them; null if it is another instance's turn. */
  async *#countOld(partition: Partition): AsyncGenerator<number, number | 'some stay' | null> {
    let total = 0
    for (let before: string | null = null; ; ) {
      const part = await this.#store.look(partition, this.#retentionMs, before)
      if (part === null) return null
      if (!part.isOld) return 'some stay'
      if (part.before === null) return total
      total += part.rows
      before = part.before
      yield 0
    }
  }

  #explain(error: unknown, message: string, partition?: string): void {
    if (isLocked(error))
      this.#logger.debug({ partition }, `${message}, because the table was in use`)
    else this.#logger.warn({ err: error, partition }, message)
  }
}
