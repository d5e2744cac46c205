// The inbox table as Drizzle sees it, for its generated migrations and, by way of aftercommit/schema, for users who
// keep the table in their own drizzle-kit schema. It has migrations of its own: the database of a service that only
// consumes has no outbox in it.
import { sql } from 'drizzle-orm'
import { bigint, index, pgSchema, pgTable, primaryKey, text, timestamp } from 'drizzle-orm/pg-core'

/** The table, under the same names that are given to createInbox(). */
export function inboxTable(name = 'inbox', schema = 'public') {
  // Drizzle knows `public` only as the schema that is not named.
  const create =
    schema === 'public' ? pgTable : (pgSchema(schema).table as unknown as typeof pgTable)
  return create(
    name,
    {
      consumer: text('consumer').notNull(),
      // text, not uuid: whatever comes with an id of its own, such as a webhook, can be handled once.
      eventId: text('event_id').notNull(),
      /** These three only where order is kept: an index that nobody reads would be paid for by every event. */
      aggregateType: text('aggregate_type'),
      aggregateId: text('aggregate_id'),
      seq: bigint('seq', { mode: 'number' }),
      handledAt: timestamp('handled_at', { withTimezone: true })
        .notNull()
        .default(sql`clock_timestamp()`),
    },
    (row) => [
      primaryKey({ name: `${name}_pkey`, columns: [row.consumer, row.eventId] }),
      // Has a later one of this aggregate been handled?
      index(`${name}_aggregate_idx`)
        .on(row.consumer, row.aggregateType, row.aggregateId, row.seq)
        .where(sql`${row.seq} is not null`),
      // Retention goes by consumer; see "The inbox" in docs/architecture.md for what this index costs.
      index(`${name}_handled_idx`).on(row.consumer, row.handledAt),
    ],
  )
}

/** The table under its default name. */
export const inbox = inboxTable()
