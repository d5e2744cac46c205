// Topics as a relation `t`, each with the time from which its unfinished events are read (horizon.ts).
import { sql, type SQL } from '../../drivers/sql.ts'
import { encodeArray, isDueIndexed } from './rows.ts'

/** `t(topic, since)`, for these topics with their times in ms. */
export function topicsSince(since: Iterable<readonly [topic: string, ms: number]>): SQL {
  const entries = [...since]
  const topics = encodeArray(entries.map(([topic]) => topic))
  const times = encodeArray(entries.map(([, ms]) => String(ms)))
  return sql`unnest(${topics}::text::text[], ${times}::text::float8[]) as t(topic, since)`
}

/** An unfinished event of `t`, looked up by topic and time. */
export const isOfTopic = (row: SQL) =>
  sql`${row}.topic = t.topic and ${isDueIndexed(row)} and ${row}.available_at >= to_timestamp(t.since / 1000)`
