// The business that the outbox serves: orders are placed and, a moment later, paid. Each step is a unit
// of work of its own, so one order's events leave at different times and still have to arrive in order.
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { eq, sql } from 'drizzle-orm'
import { integer, pgTable, text, uuid } from 'drizzle-orm/pg-core'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import type { Outbox } from 'aftercommit'

const ORDERS_PER_SECOND = 50
const PAID_AFTER_MS = 1_000
const DECLINED_EVERY = 20

const orders = pgTable('orders', {
  id: integer('id').primaryKey(),
  cents: integer('cents').notNull(),
  status: text('status').notNull(),
  // What was emitted for this order, in order: the oracle's truth, kept apart from the outbox table.
  eventIds: uuid('event_ids').array().notNull(),
})

export interface OrderService {
  /** Units of work that ended in COMMIT, and those that threw. */
  readonly units: { committed: number; rolledBack: number }
  /** Takes orders at a steady rate for so long; ends early, by an AbortError, with the signal. */
  takeOrders(ms: number, signal: AbortSignal): Promise<void>
  /** Resolves when no unit of work is under way: the driver does not take a connection's end lightly. */
  settle(): Promise<void>
}

class CardDeclined extends Error {}

export async function createOrdersTable(db: PostgresJsDatabase): Promise<void> {
  await db.execute(sql`
    create table orders (
      id int primary key,
      cents int not null,
      status text not null,
      event_ids uuid[] not null
    )`)
}

export function openOrderService(outbox: Outbox<PostgresJsDatabase>): OrderService {
  const units = { committed: 0, rolledBack: 0 }
  const unpaid: { id: number; dueAt: number }[] = []
  const underWay = new Set<Promise<void>>()
  let failure: unknown = null

  async function placeOrder(id: number): Promise<void> {
    const cents = 500 + ((id * 7_919) % 20_000)
    await outbox.withOutbox(async (tx, emit) => {
      const eventId = emit({
        type: 'OrderPlaced',
        aggregateType: 'order',
        aggregateId: id,
        payload: { id, cents },
      })
      await tx.insert(orders).values({ id, cents, status: 'placed', eventIds: [eventId] })
      // After the emit and the insert, so that there is something to take back.
      if (id % DECLINED_EVERY === 0) throw new CardDeclined()
    })
    unpaid.push({ id, dueAt: performance.now() + PAID_AFTER_MS })
  }

  async function payOrder(id: number): Promise<void> {
    await outbox.withOutbox(async (tx, emit) => {
      const eventId = emit({
        type: 'OrderPaid',
        aggregateType: 'order',
        aggregateId: id,
        payload: { id },
      })
      const eventIds = sql`${orders.eventIds} || ${eventId}::uuid`
      await tx.update(orders).set({ status: 'paid', eventIds }).where(eq(orders.id, id))
    })
  }

  // A customer does not wait for the one before: units of work run side by side.
  function begin(unit: Promise<void>): void {
    const counted = count(unit).finally(() => underWay.delete(counted))
    underWay.add(counted)
  }

  async function count(unit: Promise<void>): Promise<void> {
    try {
      await unit
      units.committed += 1
    } catch (error) {
      if (error instanceof CardDeclined) units.rolledBack += 1
      else failure ??= error
    }
  }

  async function takeOrders(ms: number, signal: AbortSignal): Promise<void> {
    const startedAt = performance.now()
    let taken = 0
    for (let elapsed = 0; elapsed < ms; elapsed = performance.now() - startedAt) {
      // By the clock, so that a slow moment is caught up and the rate stays what it says.
      while (taken < (elapsed / 1_000) * ORDERS_PER_SECOND) begin(placeOrder(++taken))
      while (unpaid[0] && unpaid[0].dueAt <= performance.now()) begin(payOrder(unpaid.shift()!.id))
      await delay(5, undefined, { signal })
      if (failure) break
    }
    await Promise.all(underWay)
    if (failure) throw failure
  }

  async function settle(): Promise<void> {
    await Promise.all(underWay)
  }

  return { units, takeOrders, settle }
}
