// What a round of retention would delete, for a person who is about to run one. Only reads.
import type { Count, Partition, PartitionStore } from '../store/outbox/outbox-store.ts'
import type { PreviewStore } from '../store/outbox/preview/preview-store.ts'
import { LATER_WITH_PARTITIONS_MS, type RetentionRules } from './retention.ts'

/** Rows are looked at and counted no further, by default. */
const COUNTED = 1_000_000

export interface PurgePreview {
  readonly published: Count
  readonly deadLetters: Count
  /** Partitions that would be dropped, as far as they were looked at. Their rows are among the published ones. */
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
  const old = found?.isOwner ? found.old : []
  const whole = await countDropped(partitions, old, { retentionMs, most })
  const inBatches = await preview.countOld({
    status: 'published',
    olderThanMs: found ? retentionMs + LATER_WITH_PARTITIONS_MS : retentionMs,
    except: whole.counted,
    most,
  })
  const rows = whole.rows + inBatches.count
  const deadLetters =
    deadLetterRetentionMs === null
      ? NOTHING
      : await preview.countOld({
          status: 'dead_letter',
          olderThanMs: deadLetterRetentionMs,
          most,
        })
  return {
    published: {
      count: Math.min(rows, most),
      exact: whole.isComplete && inBatches.exact && rows <= most,
    },
    deadLetters,
    partitions: whole.dropped.map(({ name }) => name),
  }
}

interface Whole {
  readonly dropped: readonly Partition[]
  /** Those, and the one at which it stopped. */
  readonly counted: readonly Partition[]
  readonly rows: number
  /** Whether it looked at all of them. */
  readonly isComplete: boolean
}

/** Looks at no more than `most` rows and one part of a partition, whether they are old or not. */
async function countDropped(
  store: PartitionStore,
  old: readonly Partition[],
  { retentionMs, most }: { readonly retentionMs: number; readonly most: number },
): Promise<Whole> {
  const dropped: Partition[] = []
  let [rows, looked] = [0, 0]
  for (const partition of old) {
    let ofThis = 0
    for (let before: string | null = null; ; ) {
      if (looked > most) {
        const counted = ofThis > 0 ? [...dropped, partition] : dropped
        return { dropped, counted, rows: rows + ofThis, isComplete: false }
      }
      const part = await store.peek(partition, retentionMs, before)
      looked += part.rows
      // A row of it stays.
      if (!part.isOld) break
      if (part.before === null) {
        dropped.push(partition)
        rows += ofThis
        break
      }
      ofThis += part.rows
      before = part.before
    }
  }
  return { dropped, counted: dropped, rows, isComplete: true }
}
