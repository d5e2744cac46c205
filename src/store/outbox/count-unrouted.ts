// How many due events have a topic without a route, by topic, each counted up to the limit.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import type { DueTopics } from './due-topics.ts'
import { type CountRow, hiddenLimit, toCounts } from './rows.ts'
import type { StatementContext } from './statement.ts'
import { isOfTopic, topicsSince } from './topics.ts'

export function countUnroutedStatement(context: StatementContext, dueTopics: DueTopics) {
  const { outbox, horizon } = context
  return async (routed: readonly string[], limit: number): Promise<Record<string, number>> => {
    const due = (await dueTopics()).topics.filter((topic) => !routed.includes(topic))
    if (due.length === 0) return {}
    const topics = [...horizon.since].filter(([topic]) => due.includes(topic))
    const rows = await runInBackground<CountRow>(
      context,
      'count events without a route',
      sql`
        select t.topic as name, due.count from ${topicsSince(topics)} cross join lateral (
          select count(*)::int as count from (
            select from ${outbox} o where ${isOfTopic(sql`o`)} and o.available_at <= now()
            order by o.available_at limit ${hiddenLimit(limit)}
          ) due
        ) due order by t.topic`,
    )
    return toCounts(rows)
  }
}
