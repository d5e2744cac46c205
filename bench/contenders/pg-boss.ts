// pg-boss: a job per event, sent in the transaction, and a worker that polls. Tuned: large batches, one after another
// while they are full, and a worker that is woken by NOTIFY.
import { sql } from 'drizzle-orm'
import { fromDrizzle, PgBoss } from 'pg-boss'
import { type BenchEvent, type MakeContender, messageOf } from '../contender.ts'
import { drizzleOn, openPool, placeOrder } from '../node-postgres.ts'

const QUEUE = 'events'
const TUNED = {
  batchSize: 1_000,
  pollingIntervalSeconds: 0.5,
  notifyPollingIntervalSeconds: 0.5,
  burstWhenBatchFull: true,
}

export const make: MakeContender = async (stage) => {
  const pool = await openPool(stage)
  const producer = stage.kafka.producer()
  const boss = new PgBoss({
    connectionString: stage.databaseUrl,
    useListenNotify: stage.tuned,
  })
  boss.on('error', () => {})
  await boss.start()
  await boss.createQueue(QUEUE, { notify: stage.tuned })

  return {
    async start() {
      await producer.connect()
      await boss.work<BenchEvent>(QUEUE, stage.tuned ? TUNED : {}, async (jobs) => {
        const messages = jobs.map(({ data }) => messageOf(data))
        await producer.send({ topic: stage.topic, acks: -1, messages })
      })
    },
    async unit(events, committed) {
      await placeOrder(pool, events, async (client) => {
        const db = fromDrizzle(drizzleOn(client), sql)
        for (const event of events) await boss.send(QUEUE, event, { db })
      })
      committed()
    },
    async leaveBehind(events) {
      await boss.insert(
        QUEUE,
        events.map((data) => ({ data })),
      )
    },
    async stop() {
      await boss.stop({ graceful: true, timeout: 5_000 })
      await producer.disconnect()
      await pool.end()
    },
  }
}
