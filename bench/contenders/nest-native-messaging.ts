// @nest-native/messaging: a row per event and one worker that is woken after commit. Tuned: larger claims. With
// several workers it sends events more than once, as its claim does not lock the rows: "drain with four" shows how often.
import { OutboxClaimer, OutboxWaker, runWorkerLoop } from '@nest-native/messaging'
import { PostgresOutboxStore } from '@nest-native/messaging/postgres'
import { drizzle } from 'drizzle-orm/node-postgres'
import { type BenchEvent, type MakeContender, messageOf } from '../contender.ts'
import { drizzleOn, inTransaction, openPool, placeOrder } from '../node-postgres.ts'

const TUNED = { batchSize: 200 }

export const make: MakeContender = async (stage) => {
  const pool = await openPool(stage)
  const producer = stage.kafka.producer()
  const createTable = async () => {
    await pool.query(`create table outbox_events (id text primary key, topic text not null,
    payload jsonb not null, status text not null, attempts integer not null default 0,
    max_attempts integer not null default 10, idempotency_key text, available_at text not null,
    claimed_at text, claimed_by text, processed_at text, last_error text, created_at text not null)`)
    await pool.query(`create unique index on outbox_events (idempotency_key)
      where idempotency_key is not null`)
    await pool.query('create index on outbox_events (status, available_at)')
  }
  if (stage.fresh) await createTable()
  const store = new PostgresOutboxStore()
  const waker = new OutboxWaker()
  const ending = new AbortController()
  let loop: Promise<void> | undefined

  return {
    async start() {
      await producer.connect()
      const claimer = new OutboxClaimer(drizzle(pool), store, {
        async publish({ payload }) {
          const messages = [messageOf(payload as unknown as BenchEvent)]
          await producer.send({ topic: stage.topic, acks: -1, messages })
        },
      })
      const { signal } = ending
      loop = runWorkerLoop(claimer, { waker, signal, ...(stage.tuned && { claimer: TUNED }) })
    },
    async unit(events, committed) {
      await placeOrder(pool, events, async (client) => {
        const tx = drizzleOn(client)
        for (const event of events) await store.enqueue(tx, { topic: stage.topic, payload: event })
      })
      committed()
      waker.notify()
    },
    async leaveBehind(events) {
      await inTransaction(pool, async (client) => {
        const tx = drizzleOn(client)
        for (const event of events) await store.enqueue(tx, { topic: stage.topic, payload: event })
      })
    },
    async stop() {
      ending.abort()
      waker.notify()
      await loop
      await producer.disconnect()
      await pool.end()
    },
  }
}
