// The outbox table as Drizzle sees it, and the two small ones beside it, for the generated migrations and for users who keep
// the tables in their own drizzle-kit schema.
import { sql } from 'drizzle-orm'
import {
  bigint,
  boolean,
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
import type { EventStatus } from '../../event/event.ts'

export type { EventStatus }

const time = (name: string) => timestamp(name, { withTimezone: true })
const timeOfDatabase = (name: string) => time(name).notNull().default(sql`clock_timestamp()`)

// Drizzle refuses `public` as a named schema.
const tableIn = (schema: string) =>
  schema === 'public' ? pgTable : (pgSchema(schema).table as unknown as typeof pgTable)

/** The table, with the same name and schema as in createOutbox(). */
export function outboxTable(name = 'outbox', schema = 'public') {
  return tableIn(schema)(
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
      /** When a scheduled event is due. It never changes. null: the event was not scheduled. */
      deliverAt: time('deliver_at'),
      /** For rows that a connector relays (relay: 'cdc'): the header `occurred-at`, as it cannot format a time. Else null. */
      cdcOccurredAt: text('cdc_occurred_at'),
    },
    (row) => [
      check(
        `${name}_status_check`,
        sql`${row.status} in ('scheduled', 'pending', 'failed', 'published', 'dead_letter')`,
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
      // What failed and will be tried again, as it is grouped. An event that never fails is never in it.
      index(`${name}_failed_idx`)
        .on(row.seq)
        .where(sql`${row.seq} > 0 and ${row.status} = 'failed'`),
      // What is scheduled. Until an event is due, it is in no other index but the primary key.
      index(`${name}_scheduled_idx`)
        .on(row.deliverAt)
        .where(sql`${row.deliverAt} > '-infinity' and ${row.status} = 'scheduled'`),
    ],
  )
}

/** What is paused. `name` is the name of the outbox table. */
export function outboxPausesTable(name = 'outbox', schema = 'public') {
  return tableIn(schema)(`${name}_pauses`, {
    /** Empty: everything. */
    topic: text('topic').primaryKey(),
    since: timeOfDatabase('since'),
    pausedBy: text('paused_by'),
    reason: text('reason'),
  })
}

/** The instances that run. `name` is the name of the outbox table. */
export function outboxInstancesTable(name = 'outbox', schema = 'public') {
  return tableIn(schema)(`${name}_instances`, {
    id: uuid('id').primaryKey(),
    workerId: text('worker_id').notNull(),
    host: text('host').notNull(),
    pid: integer('pid').notNull(),
    version: text('version').notNull(),
    startedAt: timeOfDatabase('started_at'),
    seenAt: timeOfDatabase('seen_at'),
    publishers: json('publishers').notNull(),
    immediate: boolean('immediate').notNull(),
    poller: boolean('poller').notNull(),
    settings: json('settings').notNull(),
    /** What it did and what is out of its reach, as of its last beat. */
    report: json('report').notNull(),
    /** What it did minute by minute, as of `history_at`. Outlives the instance by three hours. */
    history: json('history'),
    historyAt: time('history_at'),
  })
}

// The tables under their default names.
export const outbox = outboxTable()
export const outboxPauses = outboxPausesTable()
export const outboxInstances = outboxInstancesTable()
