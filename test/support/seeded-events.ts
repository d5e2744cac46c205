// Rows of every status, written past the outbox, for what only looks at them.
import { randomUUID } from 'node:crypto'
import type postgres from 'postgres'
import { v7 } from 'uuid'

export type SeededEvent = {
  readonly id?: string
  readonly status?: 'pending' | 'failed' | 'published' | 'dead_letter'
  readonly type?: string
  readonly topic?: string
  readonly aggregateId?: string
  readonly attempts?: number
  readonly error?: string | null
  readonly payload?: unknown
  /** How long ago it was saved. */
  readonly secondsAgo?: number
  /** When it is due, from now; negative: it has been due. */
  readonly dueInSeconds?: number
}

let made = 0

/** Returns the ids. */
export async function seed(
  sql: postgres.Sql,
  events: readonly SeededEvent[],
  table = 'outbox',
): Promise<string[]> {
  const ids: string[] = []
  for (const event of events) {
    const { status = 'pending', type = 'OrderPlaced', topic = 'orders', attempts = 0 } = event
    const { aggregateId = randomUUID(), error = null, payload = { total: 42 } } = event
    const { secondsAgo = 0, dueInSeconds = 0 } = event
    // Two of one millisecond are in the order in which they were made.
    const id = event.id ?? v7({ msecs: Date.now() - secondsAgo * 1_000, seq: (made += 1) })
    const isTried = attempts > 0 || status === 'dead_letter'
    await sql`
      insert into ${sql(table)} (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers, status,
        attempts, max_attempts, available_at, occurred_at, created_at, published_at, last_attempt_at, last_error)
      select ${id}::uuid, ${Math.floor(Math.random() * 2 ** 40)}::bigint, 'order', ${aggregateId}, ${type}, ${topic},
        ${JSON.stringify(payload)}::text::json, '{"tenant":"blue"}', ${status}, ${attempts}::int, 10,
        now() + ${dueInSeconds}::float8 * interval '1 second', at, at,
        case when ${status} = 'published' then at end, case when ${isTried}::boolean then at end, ${error}::text
      from (select now() - ${secondsAgo}::float8 * interval '1 second' as at) t`
    ids.push(id)
  }
  return ids
}
