// Another limit: the idea of the fast path and nothing else. A row in the transaction, one request for whatever has been
// committed meanwhile, one update for whatever was sent. No leases, no order, no retries, no fallback: what is in memory
// when the process dies is never sent. What it is faster than us by is the price of those.
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { openShop } from '../business.ts'
import { type BenchEvent, type MakeContender, messageOf } from '../contender.ts'

const SENDS_AT_ONCE = 2

interface Saved {
  readonly id: string
  readonly event: BenchEvent
}

export const make: MakeContender = async (stage) => {
  const { db, placeOrder, close } = await openShop(stage)
  const producer = stage.kafka.producer()
  await db.execute(sql`create table if not exists bare_outbox (id uuid primary key,
    seq bigint generated always as identity, key text not null, payload json not null,
    status text not null default 'pending', available_at timestamptz not null)`)
  await db.execute(sql`create index if not exists bare_available_idx on bare_outbox (available_at, seq)
    where status = 'pending'`)
  let queue: Saved[] = []
  let sent: Saved[] = []
  let sends = 0
  let recording = Promise.resolve()

  async function save(tx: Pick<typeof db, 'execute'>, { id, event }: Saved) {
    await tx.execute(sql`insert into bare_outbox (id, key, payload, available_at) values (${id},
      ${event.key}, ${JSON.stringify(event.payload)}::text::json, clock_timestamp() + interval '7 s')`)
  }

  async function send() {
    if (queue.length === 0 || sends === SENDS_AT_ONCE) return
    const batch = queue
    queue = []
    sends += 1
    const messages = batch.map(({ event }) => messageOf(event))
    await producer.sendBatch({ acks: -1, topicMessages: [{ topic: stage.topic, messages }] })
    sends -= 1
    sent.push(...batch)
    recording = recording.then(record)
    void send()
  }

  async function record() {
    if (sent.length === 0) return
    const ids = sent.map(({ id }) => id)
    sent = []
    await db.execute(sql`update bare_outbox set status = 'published'
      where id = any (${`{${ids.join(',')}}`}::text::uuid[])`)
  }

  return {
    start: () => producer.connect(),
    async unit(events, committed) {
      const saved = events.map((event) => ({ id: randomUUID(), event }))
      await db.transaction(async (tx) => {
        await placeOrder(tx, events)
        for (const one of saved) await save(tx, one)
      })
      committed()
      queue.push(...saved)
      setImmediate(() => void send())
    },
    async stop() {
      await recording
      await producer.disconnect()
      await close()
    },
  }
}
