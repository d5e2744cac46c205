// The outbox as articles show it: a row in the transaction, a send and an update of the row after commit, one by
// one, and a poller that sends again what is older than seven seconds, a hundred at a time.
import { sql } from 'drizzle-orm'
import { openShop } from '../business.ts'
import { type BenchEvent, type MakeContender, messageOf } from '../contender.ts'

const THRESHOLD_MS = 7_000
const INTERVAL_MS = 7_000
const BATCH = 100

interface Row {
  id: string
  key: string
  payload: BenchEvent['payload']
}

export const make: MakeContender = async (stage) => {
  const { db, placeOrder, close } = await openShop(stage)
  const producer = stage.kafka.producer()
  if (stage.fresh) await createTable()
  let timer: NodeJS.Timeout | undefined
  let polling = Promise.resolve()

  async function createTable() {
    await db.execute(sql`create table textbook_outbox (id text primary key, key text not null,
    payload jsonb not null, status text not null default 'PENDING', attempts int not null default 0,
    created_at timestamptz not null default now(), published_at timestamptz)`)
    await db.execute(sql`create index on textbook_outbox (status, created_at)`)
  }

  async function save(tx: Pick<typeof db, 'execute'>, event: BenchEvent) {
    await tx.execute(sql`insert into textbook_outbox (id, key, payload)
      values (${event.id}, ${event.key}, ${JSON.stringify(event.payload)}::text::jsonb)`)
  }

  async function publish(event: BenchEvent) {
    await producer.send({ topic: stage.topic, acks: -1, messages: [messageOf(event)] })
    await db.execute(sql`update textbook_outbox set status = 'PUBLISHED', published_at = now()
      where id = ${event.id}`)
  }

  async function poll() {
    const rows = (await db.execute(sql`select id, key, payload from textbook_outbox
      where status = 'PENDING' and created_at < now() - ${THRESHOLD_MS} * interval '1 ms'
      order by created_at limit ${BATCH} for update skip locked`)) as unknown as Row[]
    for (const row of rows) await publish(row)
  }

  return {
    async start() {
      await producer.connect()
      timer = setInterval(() => {
        polling = polling.then(poll)
      }, INTERVAL_MS)
    },
    async unit(events, committed) {
      await db.transaction(async (tx) => {
        await placeOrder(tx, events)
        for (const event of events) await save(tx, event)
      })
      committed()
      for (const event of events) void publish(event).catch(() => {})
    },
    async leaveBehind(events) {
      await db.transaction(async (tx) => {
        for (const event of events) await save(tx, event)
      })
      await db.execute(sql`update textbook_outbox set created_at = now() - interval '1 minute'`)
    },
    async stop() {
      clearInterval(timer)
      await polling
      await producer.disconnect()
      await close()
    },
  }
}
