// How many rows the retention would delete, found as purge.ts finds them: by their ids, from the oldest on.
import { sql, type SQL } from '../../../drivers/sql.ts'
import { type Background, runInBackground } from '../../database.ts'
import type { Count, Partition, PurgeRequest } from '../outbox-store.ts'
import { ageOf, bornBefore } from '../purge.ts'
import { type AnyNumber, encodeArray, hiddenLimit } from '../rows.ts'

interface OldRows extends Pick<PurgeRequest, 'status' | 'olderThanMs'> {
  /** Partitions to leave out, because they are dropped whole. */
  readonly except?: readonly Partition[]
  /** Rows are counted no further. */
  readonly most: number
}

export function countOldStatement(context: Background & { readonly outbox: SQL }) {
  return async ({ status, olderThanMs, except = [], most }: OldRows): Promise<Count> => {
    const endedAt = status === 'published' ? sql`o.published_at` : sql`o.last_attempt_at`
    const lower = encodeArray(except.map((partition) => partition.lower))
    const upper = encodeArray(except.map((partition) => partition.upper))
    const [row] = await runInBackground<{ count: AnyNumber }>(
      context,
      'count old rows',
      sql`select count(*)::int as count from (
        select from ${context.outbox} o
        where o.status = ${sql.raw(`'${status}'`)} and ${endedAt} < now() - ${ageOf(olderThanMs)}
          and o.id < ${bornBefore(olderThanMs)} and not exists (
            select from unnest(${lower}::text::uuid[], ${upper}::text::uuid[]) as p(lower, upper)
            where o.id >= p.lower and o.id < p.upper)
        order by o.id limit ${hiddenLimit(most + 1)}
      ) found`,
    )
    const count = Number(row!.count)
    return { count: Math.min(count, most), exact: count <= most }
  }
}
