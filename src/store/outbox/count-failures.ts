// How many failures of one kind match a filter, page by page, as change-failures.ts would find them.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import { isFailureIndexed, matching } from './failure-filter.ts'
import type { FailureStore } from './failure-store.ts'
import { type AnyNumber, hiddenLimit } from './rows.ts'
import type { StatementContext } from './statement.ts'

export function countFailuresStatement(context: StatementContext): FailureStore['count'] {
  const { outbox } = context
  return async (filter, { limit, afterSeq }) => {
    const looked =
      filter.id === undefined
        ? sql`(
            select o.id, o.seq, o.status, o.event_type, o.topic, o.aggregate_type, o.aggregate_id, o.last_attempt_at,
              o.last_error
            from ${outbox} o where ${isFailureIndexed(filter.status)} and o.seq > ${afterSeq}::float8::bigint
            order by o.seq limit ${hiddenLimit(limit)}
          ) o`
        : sql`${outbox} o where ${matching(filter)}`
    const end =
      filter.id === undefined
        ? sql`case when count(*) >= ${limit}::int then max(o.seq) end`
        : sql`null::bigint`
    const [row] = await runInBackground<{ count: AnyNumber; lastSeq: string | null }>(
      context,
      'count what failed',
      sql`select (count(*) filter (where ${matching(filter)}))::int as count, (${end})::text as "lastSeq"
        from ${looked}`,
    )
    const { count, lastSeq } = row!
    return { count: Number(count), lastSeq: lastSeq === null ? null : Number(lastSeq) }
  }
}
