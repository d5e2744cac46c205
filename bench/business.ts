// The business that all contenders do: an order is placed, as one row of a table of its own.
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import type { BenchEvent, Stage } from './contender.ts'

export const CREATE_ORDERS = `create table if not exists orders (
  id bigint generated always as identity primary key, customer text not null, total integer not null,
  placed_at timestamptz not null default now())`

/** For contenders on node-postgres. */
export const PLACE_ORDER = 'insert into orders (customer, total) values ($1, $2)'
export const orderValues = ([first]: readonly BenchEvent[]) => [
  first!.key,
  first!.payload.text.length,
]

export type Shop = Awaited<ReturnType<typeof openShop>>

/** For contenders on Drizzle and postgres.js. */
export async function openShop({ databaseUrl, poolSize }: Stage) {
  const client = postgres(databaseUrl, { max: poolSize, onnotice: () => {} })
  const db = drizzle(client)
  await db.execute(sql.raw(CREATE_ORDERS))
  return {
    db,
    placeOrder: (tx: Pick<typeof db, 'execute'>, events: readonly BenchEvent[]) => {
      const [customer, total] = orderValues(events)
      return tx.execute(sql`insert into orders (customer, total) values (${customer}, ${total})`)
    },
    close: () => client.end({ timeout: 1 }),
  }
}
