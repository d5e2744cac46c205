// How rows and lists cross between Postgres and the application. Each driver has parsers of its own, and users
// replace them: what is no number is text by the time it leaves Postgres, and numbers are read with Number().
import type { OutboxEvent } from '../events.ts'
import { sql } from './sql.ts'

// Statistics are from a quiet time, when next to nothing was pending, and a long history keeps them so while a
// backlog builds up. By them an index of pending rows is the cheapest way to any row, be it known by its id or
// by its aggregate, and each lookup reads the whole backlog: with 100,000 rows a claim took 5 s, and one that
// outlasts half its lease is given up and made again. A value from a subquery is no reason to take such an index.
export const PENDING = sql`(select 'pending')`
export const PUBLISHED = sql`(select 'published')`

/** The aggregate type of copies for the dead-letter topic. One that dies holds nothing back. */
export const DEAD_LETTER_COPY = 'aftercommit.dead_letter'

export const OCCURRED_AT = sql`(extract(epoch from o.occurred_at) * 1000)::float8 as "occurredAt"`

/** An event, of a table that is called o. The payload stays text: it is handed on, not looked at. */
export const EVENT_COLUMNS = sql`o.id::text, o.seq::text, o.event_type as type,
  o.aggregate_type as "aggregateType", o.aggregate_id as "aggregateId", o.topic, o.payload::text,
  o.headers::text, ${OCCURRED_AT}, o.attempts, o.max_attempts as "maxAttempts"`

/** A number on its way out of a database: what the driver's parsers made of it. */
export type AnyNumber = number | string | bigint

type Read = 'seq' | 'headers' | 'occurredAt' | 'attempts' | 'maxAttempts'

export interface EventRow extends Omit<OutboxEvent, Read> {
  seq: string
  headers: string
  occurredAt: AnyNumber
  attempts: AnyNumber
  maxAttempts: AnyNumber
}

export function toEvent(row: EventRow): OutboxEvent {
  return {
    ...row,
    seq: Number(row.seq),
    headers: JSON.parse(row.headers) as Record<string, string>,
    occurredAt: toDate(row.occurredAt),
    attempts: Number(row.attempts),
    maxAttempts: Number(row.maxAttempts),
  }
}

/** From milliseconds. */
export function toDate(ms: AnyNumber): Date {
  return new Date(Number(ms))
}

export function encodeArray(values: readonly string[]): string {
  const items = values.map((value) => `"${value.replaceAll(/["\\]/g, '\\$&')}"`)
  return `{${items.join(',')}}`
}
