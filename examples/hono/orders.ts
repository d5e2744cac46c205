// The orders, and what happens after each of them: a handler in this process, so the example needs no broker.
import { createOutbox, defineEvents, event } from 'aftercommit'
import { handlersPublisher } from 'aftercommit/handlers'
import { eq, sql } from 'drizzle-orm'
import { integer, pgTable, serial, text } from 'drizzle-orm/pg-core'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'

const client = postgres(process.env['DATABASE_URL']!, { onnotice: () => {} })
const db = drizzle(client)

const orders = pgTable('orders', {
  id: serial().primaryKey(),
  customer: text().notNull(),
  total: integer().notNull(),
  status: text().notNull().default('placed'),
})

const events = defineEvents({
  OrderPlaced: event<{ orderId: number; total: number }>({
    aggregate: 'order',
    key: ({ orderId }) => orderId,
  }),
})

export const outbox = createOutbox({
  db,
  events,
  migrate: true,
  publisher: handlersPublisher({
    events,
    handlers: {
      // It may run twice for one event, so it must not add up.
      async OrderPlaced({ payload: { orderId, total } }) {
        if (total > 1_000) throw new Error('the limit of the customer is 1000')
        await db.update(orders).set({ status: 'confirmed' }).where(eq(orders.id, orderId))
      },
    },
  }),
})

export async function open(): Promise<void> {
  await db.execute(
    sql`create table if not exists orders (id serial primary key, customer text not null, total integer not null, status text not null default 'placed')`,
  )
  await outbox.start()
}

export async function close(): Promise<void> {
  await outbox.stop()
  await client.end()
}

export async function placeOrder(customer: string, total: number): Promise<number> {
  return await outbox.withOutbox(async (tx, emit) => {
    const [order] = await tx.insert(orders).values({ customer, total }).returning()
    emit('OrderPlaced', { orderId: order!.id, total })
    return order!.id
  })
}

export async function findOrder(id: number) {
  const [order] = await db.select().from(orders).where(eq(orders.id, id))
  return order
}
