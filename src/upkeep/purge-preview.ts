// What a round of retention would delete, for a person who is about to run one. Only reads.
import type { Count, Partition, PartitionStore } from '../store/outbox/outbox-store.ts'
import type { PreviewStore } from '../store/outbox/preview/preview-store.ts'
import { LATER_WITH_PARTITIONS_MS, type RetentionRules } from './retention.ts'

/** Rows are counted no further, by default. */
const COUNTED = 1_000_000

export interface PurgePreview {
  readonly published: Count
  readonly deadLetters: Count
  /** Partitions that would be dropped. Their rows are among the published ones. */
  readonly partitions: readonly string[]
}

const NOTHING: Count = { count: 0, exact: true }

export async function previewPurge(
  store: { readonly partitions: PartitionStore; readonly preview: PreviewStore },
  { retentionMs, deadLetterRetentionMs }: Omit<RetentionRules, 'logger'>,
  most = COUNTED,
): Promise<PurgePreview> {
  const { partitions, preview } = store
  const found = await partitions.find(retentionMs)
  const dropped = await findDropped(partitions, found?.isOwner ? found.old : [], retentionMs)
  const inBatches = await preview.countOld({
    status: 'published',
    olderThanMs: found ? retentionMs + LATER_WITH_PARTITIONS_MS : retentionMs,
    except: dropped.map(({ partition }) => partition),
    most,
  })
  const rows = dropped.reduce((sum, { rows: inPartition }) => sum + inPartition, 0)
  const deadLetters =
    deadLetterRetentionMs === null
      ? NOTHING
      : await preview.countOld({
          status: 'dead_letter',
          olderThanMs: deadLetterRetentionMs,
          most,
        })
  return {
    published: { count: inBatches.count + rows, exact: inBatches.exact },
    deadLetters,
    partitions: dropped.map(({ partition }) => partition.name),
  }
}

async function findDropped(
  store: PartitionStore,
  old: readonly Partition[],
  retentionMs: number,
): Promise<{ partition: Partition; rows: number }[]> {
  const dropped: { partition: Partition; rows: number }[] = []
  for (const partition of old) {
    const rows = await countIfOld(store, partition, retentionMs)
    if (rows !== null) dropped.push({ partition, rows })
  }
  return dropped
}

/** null: a row of it stays. */
async function countIfOld(
  store: PartitionStore,
  partition: Partition,
  retentionMs: number,
): Promise<number | null> {
  let total = 0
  for (let before: string | null = null; ; ) {
    const part = await store.peek(partition, retentionMs, before)
    if (!part.isOld) return null
    if (part.before === null) return total
    total += part.rows
    before = part.before
  }
}
