// A selection of failures, as a condition on a table with the alias o.
import { sql, type SQL } from '../../drivers/sql.ts'
import { isError } from './boiled-error.ts'
import { savedWithin } from './event-filter.ts'
import type { FailuresOfKind, FailureStatus } from './failure-store.ts'
import { encodeArray, isDeadIndexed, isFailedIndexed } from './rows.ts'

/** Failures of one kind, in the order of saving. */
export function isFailureIndexed(status: FailureStatus): SQL {
  return status === 'failed' ? isFailedIndexed(sql`o`) : isDeadIndexed(sql`o`)
}

export function matching(filter: FailuresOfKind): SQL {
  const { status, id, type, topic, aggregateType, aggregateId, error } = filter
  const { failedSince, failedBefore } = filter
  const conditions: SQL[] = [...savedWithin(filter)]
  if (id === undefined) conditions.push(isFailureIndexed(status))
  else {
    // By the primary key, however many other failures there are.
    const ids = encodeArray(typeof id === 'string' ? [id] : id)
    conditions.push(sql`o.id = any (${ids}::text::uuid[]) and o.status = ${status}::text`)
  }
  if (type !== undefined) conditions.push(sql`o.event_type = ${type}::text`)
  if (topic !== undefined) conditions.push(sql`o.topic = ${topic}::text`)
  if (aggregateType !== undefined) conditions.push(sql`o.aggregate_type = ${aggregateType}::text`)
  if (aggregateId !== undefined) conditions.push(sql`o.aggregate_id = ${aggregateId}::text`)
  if (failedSince)
    conditions.push(sql`o.last_attempt_at >= ${failedSince.toISOString()}::text::timestamptz`)
  if (failedBefore)
    conditions.push(sql`o.last_attempt_at < ${failedBefore.toISOString()}::text::timestamptz`)
  if (error !== undefined) conditions.push(isError(sql`o.last_error`, error))
  return sql.join(conditions, sql` and `)
}
