// How rows and lists pass between Postgres and the application. Drivers have different parsers, and users replace them.
// So statements cast everything but numbers to text, and numbers are read with Number().
import type { OutboxEvent } from '../../event/event.ts'
import { sql, type SQL } from '../../drivers/sql.ts'

// Planner statistics come from a quiet time, when almost nothing was unfinished, and a long history keeps them so while a
// backlog builds up. By them, any index of unfinished events is the cheapest way to any row, even to one known by id, and
// each lookup would read the whole backlog: with 100,000 rows a claim took 5 s. So the condition of each index includes an
// always-true test of its first column, and the planner uses the index only for queries that repeat the test.

/** Unfinished, looked up by id. */
export const isUnfinished = (row: SQL) => sql`${row}.status in ('pending', 'failed')`

/** Unfinished, looked up by topic and time. */
export const isDueIndexed = (row: SQL) => sql`${row}.topic <> '' and ${isUnfinished(row)}`

/** Unfinished, looked up by lane. */
export const isLaneIndexed = (row: SQL) => sql`${row}.lane >= 0 and ${isUnfinished(row)}`

/** A dead letter, looked up by lane. */
export const isDeadLaneIndexed = (row: SQL) =>
  sql`${row}.lane >= 0 and ${row}.status = 'dead_letter'`

/** A dead letter, in the order of saving. */
export const isDeadIndexed = (row: SQL) => sql`${row}.seq > 0 and ${row}.status = 'dead_letter'`

/** Failed and to be tried again, in the order of saving. */
export const isFailedIndexed = (row: SQL) => sql`${row}.seq > 0 and ${row}.status = 'failed'`

/** Scheduled, looked up by the time at which it is due. */
export const isScheduledIndexed = (row: SQL) =>
  sql`${row}.deliver_at > '-infinity' and ${row}.status = 'scheduled'`

/**
 * By id. The list comes from a subquery, so that it is read once: where a renewal has changed a row meanwhile, Postgres checks
 * that row again and would read the whole list each time (16 s for 3,000 rows; 0.1 s this way). A join alone is no better:
 * planned from statistics of a quiet time, or without any, it starts with the rows of the table.
 */
export const isOneOf = (ids: readonly string[]) =>
  sql`o.id = any ((select ${encodeArray(ids)}::text::uuid[])::uuid[])`

/**
 * A limit that the planner does not see. If it expects fewer rows than that, it reads and sorts all that there are, instead
 * of reading the index until it has enough: 2 s with 100,000 rows, 0.02 s this way.
 */
export const hiddenLimit = (most: number) => sql`(select ${most}::int)`

/**
 * The token of a row that was changed while no process held it: no process has this lease, and it is over where the row is due.
 * So a process that had the event in its memory neither leases it as it was (lease.ts) nor records a late failure.
 */
export const OUT_OF_HANDS = sql`gen_random_uuid()`

/** The aggregate type of copies for the dead-letter topic. A copy that dies holds nothing back. */
export const DEAD_LETTER_COPY = 'aftercommit.dead_letter'

/** The event type of such a copy. */
export const DEAD_LETTERED = 'DeadLettered'

/** What every statement that leases events returns of their times. */
export const TIMES = sql`date_part('epoch', o.occurred_at) * 1000 as "occurredAt",
  date_part('epoch', o.updated_at) * 1000 as "leasedAt"`

/** An event, from a table with the alias o. The payload stays text, because it is passed on and never read. */
export const EVENT_COLUMNS = sql`o.id::text, o.seq::text, o.lane::text, o.event_type as type,
  o.aggregate_type as "aggregateType", o.aggregate_id as "aggregateId", o.topic, o.payload::text,
  o.headers::text, ${TIMES}, o.attempts, o.max_attempts as "maxAttempts"`

/** A number from the database, as the driver's parsers return it. */
export type AnyNumber = number | string | bigint

type Read = 'seq' | 'lane' | 'headers' | keyof TimesRow | 'attempts' | 'maxAttempts'

export interface TimesRow {
  occurredAt: AnyNumber
  leasedAt: AnyNumber
}

export interface EventRow extends Omit<OutboxEvent, Read>, TimesRow {
  seq: string
  lane: string
  headers: string
  attempts: AnyNumber
  maxAttempts: AnyNumber
}

/** Field by field: a backlog makes thousands of them, and to spread a row takes V8 several times as long. */
export function toEvent(row: EventRow): OutboxEvent {
  return {
    id: row.id,
    seq: Number(row.seq),
    lane: Number(row.lane),
    type: row.type,
    aggregateType: row.aggregateType,
    aggregateId: row.aggregateId,
    topic: row.topic,
    payload: row.payload,
    headers: JSON.parse(row.headers) as Record<string, string>,
    occurredAt: toDate(row.occurredAt),
    leasedAt: toDate(row.leasedAt),
    attempts: Number(row.attempts),
    maxAttempts: Number(row.maxAttempts),
  }
}

export function toTimes({ occurredAt, leasedAt }: TimesRow) {
  return { occurredAt: toDate(occurredAt), leasedAt: toDate(leasedAt) }
}

export function toDate(ms: AnyNumber): Date {
  return new Date(Number(ms))
}

export interface CountRow {
  name: string
  count: AnyNumber
}

export function toCounts(rows: readonly CountRow[]): Record<string, number> {
  return Object.fromEntries(rows.map(({ name, count }) => [name, Number(count)]))
}

export function encodeArray(values: readonly string[]): string {
  const items = values.map((value) => `"${value.replaceAll(/["\\]/g, '\\$&')}"`)
  return `{${items.join(',')}}`
}
