// A filter for dead letters, as a condition on a table with the alias o.
import { sql, type SQL } from '../../drivers/sql.ts'
import type { DeadLetterFilter } from './outbox-store.ts'
import { encodeArray, isDeadIndexed } from './rows.ts'

export function matching(filter: DeadLetterFilter): SQL {
  const { id, type, aggregateType, aggregateId, diedSince, diedBefore } = filter
  const conditions = [isDeadIndexed(sql`o`)]
  if (id !== undefined) {
    const ids = encodeArray(typeof id === 'string' ? [id] : id)
    conditions.push(sql`o.id = any (${ids}::text::uuid[])`)
  }
  if (type !== undefined) conditions.push(sql`o.event_type = ${type}::text`)
  if (aggregateType !== undefined) conditions.push(sql`o.aggregate_type = ${aggregateType}::text`)
  if (aggregateId !== undefined) conditions.push(sql`o.aggregate_id = ${aggregateId}::text`)
  if (diedSince)
    conditions.push(sql`o.last_attempt_at >= ${diedSince.toISOString()}::text::timestamptz`)
  if (diedBefore)
    conditions.push(sql`o.last_attempt_at < ${diedBefore.toISOString()}::text::timestamptz`)
  return sql.join(conditions, sql` and `)
}
