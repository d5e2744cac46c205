// The outbox table as Drizzle sees it, for the generated migrations and for users who keep the table in their own
// drizzle-kit schema.
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

/** `failed`: refused at least once, and tried again when it has rested. */
export type EventStatus = 'pending' | 'failed' | 'published' | 'dead_letter'

const time = (name: string) => timestamp(name, { withTimezone: true })
const timeOfDatabase = (name: string) => time(name).notNull().default(sql`clock_timestamp()`)

/** The table, with the same name and schema as in createOutbox(). */
export function outboxTable(name = 'outbox', schema = 'public') {
  // Drizzle refuses `public` as a named schema.
  const create =
    schema === 'public' ? pgTable : (pgSchema(schema).table as unknown as typeof pgTable)
  return create(
    name,
    {
      id: uuid('id').primaryKey(),
      seq: bigint('seq', { mode: 'number' }).notNull().generatedAlwaysAsIdentity(),
      /** Events of one lane are kept in order; see event/lane.ts. */
      lane: bigint('lane', { mode: 'number' }).notNull(),
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
      /** When the fallback looks at the row. The save, claims, renewals and backoff all move it. */
      availableAt: time('available_at').notNull(),
      /** The token of the current or last lease; null when the row was given back or never leased. */
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
      check(
        `${name}_status_check`,
        sql`${row.status} in ('pending', 'failed', 'published', 'dead_letter')`,
      ),
      // Each index is for lookups by its first column, and its condition names that column, so that the planner cannot take
      // it for anything else; see rows.ts. History is in none of them.
      // What the fallback looks at: by topic, so that one out of reach costs the others nothing; by time, so that what
      // rests does not either.
      index(`${name}_due_idx`)
        .on(row.topic, row.availableAt, row.seq)
        .where(sql`${row.topic} <> '' and ${row.status} in ('pending', 'failed')`),
      // For order: the unfinished events of a lane, and its dead letters.
      index(`${name}_lane_idx`)
        .on(row.lane, row.seq)
        .where(sql`${row.lane} >= 0 and ${row.status} in ('pending', 'failed')`),
      index(`${name}_dead_lane_idx`)
        .on(row.lane, row.seq)
        .where(sql`${row.lane} >= 0 and ${row.status} = 'dead_letter'`),
      // Dead letters as they are listed.
      index(`${name}_dead_idx`)
        .on(row.seq)
        .where(sql`${row.seq} > 0 and ${row.status} = 'dead_letter'`),
    ],
  )
}

/** The table under its default name. */
export const outbox = outboxTable()
