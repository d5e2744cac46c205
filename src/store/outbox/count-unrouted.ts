// How many due events have a topic without a route, by topic, each counted up to the limit.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import { type CountRow, encodeArray, hiddenLimit, isDueIndexed, toCounts } from './rows.ts'
import type { StatementContext } from './statement.ts'

export function countUnroutedStatement(
  context: StatementContext,
  dueTopics: () => Promise<string[]>,
) {
  const { outbox } = context
  return async (routed: readonly string[], limit: number): Promise<Record<string, number>> => {
    const topics = (await dueTopics()).filter((topic) => !routed.includes(topic))
    if (topics.length === 0) return {}
    const rows = await runInBackground<CountRow>(
      context,
      'count events without a route',
      sql`
        select t.topic as name, (select count(*)::int from (
          select from ${outbox} o where o.topic = t.topic and ${isDueIndexed(sql`o`)}
            and o.available_at <= now()
            order by o.available_at limit ${hiddenLimit(limit)}
        ) due) as count
        from unnest(${encodeArray(topics)}::text::text[]) as t(topic) order by t.topic`,
    )
    return toCounts(rows)
  }
}
