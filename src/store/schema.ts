// The outbox table as Drizzle sees it, for the generated migrations and for users who keep the table
// in their own drizzle-kit schema: `export const outbox = outboxTable()`. The inbox table stands in a file of its
// own, as its migrations do; only the function comes through here, or drizzle-kit would put the table into these.
import { sql } from 'drizzle-orm'
import {
  bigint,
  check,
  index,
  integer,
  json,
  pgSchema,
  pgTable,
  text,
  timestamp,
  uuid,
} from 'drizzle-orm/pg-core'

export { inboxTable } from './inbox-table.ts'

export type EventStatus = 'pending' | 'published' | 'dead_letter'

const time = (name: string) => timestamp(name, { withTimezone: true })
const timeOfDatabase = (name: string) => time(name).notNull().default(sql`clock_timestamp()`)

/** The table, under the same names that are given to createOutbox(). */
export function outboxTable(name = 'outbox', schema = 'public') {
  // Drizzle knows `public` only as the schema that is not named.
  const create =
    schema === 'public' ? pgTable : (pgSchema(schema).table as unknown as typeof pgTable)
  return create(
    name,
    {
      id: uuid('id').primaryKey(),
      seq: bigint('seq', { mode: 'number' }).notNull().generatedAlwaysAsIdentity(),
      aggregateType: text('aggregate_type').notNull(),
      aggregateId: text('aggregate_id').notNull(),
      eventType: text('event_type').notNull(),
      topic: text('topic').notNull(),
      // json, not jsonb: it keeps the text as it was emitted, so both paths send the same bytes.
      payload: json('payload').notNull(),
      headers: json('headers').$type<Record<string, string>>().notNull(),
      status: text('status').$type<EventStatus>().notNull().default('pending'),
      attempts: integer('attempts').notNull().default(0),
      maxAttempts: integer('max_attempts').notNull(),
      /** From when the fallback may take the row: births, claims, renewals and backoff all move it. */
      availableAt: time('available_at').notNull(),
      /** Who holds the row; null when nobody does. */
      leaseToken: uuid('lease_token'),
      workerId: text('worker_id'),
      occurredAt: time('occurred_at').notNull(),
      createdAt: timeOfDatabase('created_at'),
      updatedAt: timeOfDatabase('updated_at'),
      publishedAt: time('published_at'),
      lastAttemptAt: time('last_attempt_at'),
      lastError: text('last_error'),
    },
    (row) => [
      check(`${name}_status_check`, sql`${row.status} in ('pending', 'published', 'dead_letter')`),
      // The poller's index: only what is still to be sent, so that history costs a poll nothing.
      index(`${name}_available_idx`)
        .on(row.availableAt, row.seq)
        .where(sql`${row.status} = 'pending'`),
      // Order per aggregate: is there an earlier one that has not gone out? With the status in it, any
      // number of dead letters of an aggregate is passed over at once.
      index(`${name}_aggregate_idx`)
        .on(row.aggregateType, row.aggregateId, row.status, row.seq)
        .where(sql`${row.status} <> 'published'`),
      // What needs a person, found without a look at anything else.
      index(`${name}_dead_idx`).on(row.seq).where(sql`${row.status} = 'dead_letter'`),
    ],
  )
}

/** The table under its default name. */
export const outbox = outboxTable()
