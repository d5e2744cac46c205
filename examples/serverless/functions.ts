// Two functions as a platform would call them: one answers requests, one runs each minute. Nothing runs between calls, so
// nothing is started: flush() sends before the answer, drain() sends what was left behind.
import { createOutbox, type Publisher } from 'aftercommit'
import { postgresJs } from 'aftercommit/postgres-js'
import postgres from 'postgres'
import { webhook } from './webhook.ts'

// At module scope, so that a warm function reuses its connection. One is enough.
const sql = postgres(process.env['DATABASE_URL']!, { max: 1, onnotice: () => {} })
const publisher: Publisher = webhook(process.env['WEBHOOK_URL']!)
const outbox = createOutbox({ db: postgresJs(sql), publisher })

/** Part of the deployment, not of a function. */
export async function deploy(): Promise<void> {
  await sql`create table if not exists orders (id serial primary key, customer text not null)`
  await outbox.migrate()
}

export async function placeOrder(request: Request): Promise<Response> {
  const { customer } = (await request.json()) as { customer: string }
  const orderId = await outbox.withOutbox(async (tx, emit) => {
    const [order] = await tx`insert into orders (customer) values (${customer}) returning id`
    const payload = { orderId: order!['id'] as number, customer }
    emit({ type: 'OrderPlaced', aggregateType: 'order', aggregateId: payload.orderId, payload })
    return payload.orderId
  })
  const { ok } = await outbox.flush({ timeout: '3s' })
  // Not a reason to fail: the order is committed, and its event is safe.
  return Response.json({ orderId, published: ok }, { status: 202 })
}

export async function everyMinute(): Promise<number> {
  const { delivered } = await outbox.drain({ timeout: '50s' })
  await outbox.purge()
  return delivered
}

/** A platform ends the process instead. */
export async function close(): Promise<void> {
  await sql.end()
}
