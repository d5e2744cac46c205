// An event as people see it: how its row is read, and how it becomes a summary.
import { sql } from '../../drivers/sql.ts'
import type { TableName } from '../table-name.ts'
import type { EventSummary } from './browse-store.ts'
import { isPaused } from './pauses.ts'
import { type AnyNumber, isUnfinished, toDate } from './rows.ts'

/** Of a table with the alias o. Neither payload nor headers: a large one is stored apart, and not read for this. */
export const summaryColumns = (
  table: TableName,
) => sql`o.id::text, o.seq::text, o.status, o.event_type as type,
  o.aggregate_type as "aggregateType", o.aggregate_id as "aggregateId", o.topic, o.attempts,
  o.max_attempts as "maxAttempts", date_part('epoch', o.created_at) * 1000 as "createdAt",
  date_part('epoch', o.available_at) * 1000 as "availableAt",
  date_part('epoch', o.deliver_at) * 1000 as "deliverAt",
  date_part('epoch', o.published_at) * 1000 as "publishedAt", o.worker_id as "workerId",
  (o.lease_token is not null and o.available_at > clock_timestamp() and ${isUnfinished(sql`o`)})::int as "isLeased",
  (${isUnfinished(sql`o`)} and ${isPaused(table, sql`o.topic`)})::int as "isPaused",
  o.last_error as error`

/** The columns that summaryColumns() and filters read. */
export const BROWSED_COLUMNS = sql`o.id, o.seq, o.status, o.event_type, o.aggregate_type, o.aggregate_id, o.topic,
  o.attempts, o.max_attempts, o.created_at, o.available_at, o.deliver_at, o.published_at, o.worker_id, o.lease_token, o.last_error`

type Read =
  | 'seq'
  | 'attempts'
  | 'maxAttempts'
  | 'createdAt'
  | 'availableAt'
  | 'deliverAt'
  | 'publishedAt'
  | 'isLeased'
  | 'isPaused'

export interface SummaryRow extends Omit<EventSummary, Read> {
  seq: string
  attempts: AnyNumber
  maxAttempts: AnyNumber
  createdAt: AnyNumber
  availableAt: AnyNumber
  deliverAt: AnyNumber | null
  publishedAt: AnyNumber | null
  isLeased: AnyNumber
  isPaused: AnyNumber
}

export function toSummary(row: SummaryRow): EventSummary {
  const { id, status, type, aggregateType, aggregateId, topic, workerId, error } = row
  return {
    id,
    seq: Number(row.seq),
    status,
    type,
    aggregateType,
    aggregateId,
    topic,
    attempts: Number(row.attempts),
    maxAttempts: Number(row.maxAttempts),
    createdAt: toDate(row.createdAt),
    availableAt: toDate(row.availableAt),
    deliverAt: toDateOrNull(row.deliverAt),
    publishedAt: toDateOrNull(row.publishedAt),
    workerId,
    isLeased: Number(row.isLeased) === 1,
    isPaused: Number(row.isPaused) === 1,
    error,
  }
}

export function toDateOrNull(ms: AnyNumber | null): Date | null {
  return ms === null ? null : toDate(ms)
}
