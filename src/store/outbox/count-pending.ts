// How many events are unfinished, counted up to the limit. A scheduled event counts as soon as it is due.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import type { DueTopics } from './due-topics.ts'
import { isOverdue } from './scheduled.ts'
import { type AnyNumber, hiddenLimit } from './rows.ts'
import type { StatementContext } from './statement.ts'
import { isOfTopic, topicsSince } from './topics.ts'

export function countPendingStatement(context: StatementContext, dueTopics: DueTopics) {
  return async (limit: number): Promise<number> => {
    await dueTopics()
    return await countUnfinished(context, limit)
  }
}

/** Of the topics that the horizon knows. */
export async function countUnfinished(context: StatementContext, limit: number): Promise<number> {
  const { outbox, horizon } = context
  const most = hiddenLimit(limit)
  const [counted] = await runInBackground<{ count: AnyNumber }>(
    context,
    'count what waits',
    sql`
      select count(*)::int as count from (
        (select 1 from ${topicsSince(horizon.since)} cross join lateral (
          select from ${outbox} o where ${isOfTopic(sql`o`)}
          order by o.available_at, o.seq limit ${most}
        ) unfinished)
        union all
        (select 1 from ${outbox} o where ${isOverdue(sql`o`, horizon)} order by o.deliver_at limit ${most})
        limit ${most}
      ) waiting`,
  )
  return Number(counted!.count)
}
