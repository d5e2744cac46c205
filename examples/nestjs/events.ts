// The events of the shop. Both ends import it: what emits and what handles.
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { defineEvents, event, type Outbox } from 'aftercommit'

export const events = defineEvents({
  OrderPlaced: event<{ orderId: number; customer: string }>({
    aggregate: 'order',
    key: ({ orderId }) => orderId,
  }),
  OrderConfirmed: event<{ orderId: number; customer: string }>({
    aggregate: 'order',
    key: ({ orderId }) => orderId,
  }),
})

/** What @InjectOutbox() injects: its transactions are Drizzle's, and emit() takes these events alone. */
export type ShopOutbox = Outbox<PostgresJsDatabase, typeof events>
