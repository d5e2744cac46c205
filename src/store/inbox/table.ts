// The inbox table as Drizzle sees it, for its generated migrations and, by way of aftercommit/schema, for users who
// keep the table in their own drizzle-kit schema. It has its own migrations, because the database of a service
// that only consumes has no outbox.
import { sql } from 'drizzle-orm'
import { bigint, index, pgSchema, pgTable, primaryKey, text, timestamp } from 'drizzle-orm/pg-core'

/** The table, with the same name and schema as in createInbox(). */
export function inboxTable(name = 'inbox', schema = 'public') {
  // Drizzle refuses `public` as a named schema.
  const create =
    schema === 'public' ? pgTable : (pgSchema(schema).table as unknown as typeof pgTable)
  return create(
    name,
    {
      consumer: text('consumer').notNull(),
      // text, not uuid: anything that has an id, such as a webhook, can be handled once.
      eventId: text('event_id').notNull(),
      /** These four are set only if order is kept, so that other events do not pay for an index that is never read. */
      aggregateType: text('aggregate_type'),
      aggregateId: text('aggregate_id'),
      /** Set if the message has one. Never looked up without the aggregate: lanes are hashes and may collide. */
      lane: bigint('lane', { mode: 'number' }),
      seq: bigint('seq', { mode: 'number' }),
      handledAt: timestamp('handled_at', { withTimezone: true })
        .notNull()
        .default(sql`clock_timestamp()`),
    },
    (row) => [
      primaryKey({ name: `${name}_pkey`, columns: [row.consumer, row.eventId] }),
      // Has a later event of this aggregate and lane been handled?
      index(`${name}_lane_idx`)
        .on(row.consumer, row.aggregateType, row.aggregateId, row.lane, row.seq)
        .where(sql`${row.seq} is not null`),
      // Retention works per consumer; see "The inbox" in docs/architecture.md for what this index costs.
      index(`${name}_handled_idx`).on(row.consumer, row.handledAt),
    ],
  )
}

/** The table under its default name. */
export const inbox = inboxTable()
