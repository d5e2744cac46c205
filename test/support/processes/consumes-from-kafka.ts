// A consumer that reads a whole topic, each event through the inbox, and is killed at any moment. It notes how far it
// got after every few messages, beside the effects and not with them, so that its next life is handed some again.
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/postgres-js'
import { Kafka, logLevel } from 'kafkajs'
import postgres from 'postgres'
import { createInbox } from '../../../src/inbox/inbox.ts'
import { uniqueName } from '../doubles/unique-name.ts'
import { waitUntil } from '../timing/wait-until.ts'

export type Setup = {
  url: string
  broker: string
  topic: string
  /** Whose progress it goes on with. */
  name: string
  /** By partition, the offset at which it has read everything. */
  ends: number[]
}

const NOTED_EVERY = 10

const { url, broker, topic, name, ends } = JSON.parse(process.argv[2]!) as Setup
const client = postgres(url, { max: 5 })
const db = drizzle(client)
const inbox = createInbox({ db, consumer: 'billing', order: 'aggregate' })

const noted = await db.execute(sql`select partition, next from positions where name = ${name}`)
const positions = ends.map(() => 0)
for (const row of noted) positions[row['partition'] as number] = Number(row['next'])

// A group of its own in each life: one that is taken over would first have to find out that its member is dead.
const kafka = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING })
const consumer = kafka.consumer({ groupId: uniqueName(name), maxWaitTimeInMs: 100 })
await consumer.connect()
await consumer.subscribe({ topic, fromBeginning: true })
await consumer.run({
  autoCommit: false,
  eachMessage: async (payload) => {
    const { partition, message } = payload
    const offset = Number(message.offset)
    if (offset < positions[partition]!) return
    const { outcome } = await inbox.once(payload, async (tx, event) => {
      const { id, aggregateId, seq } = event
      console.log('handling')
      await tx.execute(sql`select pg_sleep(random() * 0.003)`)
      await tx.execute(sql`insert into effects (event_id, aggregate, seq, consumer)
        values (${id}, ${aggregateId}, ${seq}, ${name})`)
      await tx.execute(sql`select pg_sleep(random() * 0.003)`)
    })
    await db.execute(sql`insert into deliveries values (${name}, ${outcome})`)
    positions[partition] = offset + 1
    if (offset % NOTED_EVERY === 0) await note(partition)
    console.log(outcome)
  },
})
await waitUntil(() => ends.every((end, partition) => positions[partition]! >= end), {
  message: `${name} has read ${topic}`,
  timeoutMs: 120_000,
})
await consumer.disconnect()
await client.end()

async function note(partition: number): Promise<void> {
  await db.execute(sql`insert into positions values (${name}, ${partition}, ${positions[partition]!})
    on conflict (name, partition) do update set next = excluded.next`)
}
