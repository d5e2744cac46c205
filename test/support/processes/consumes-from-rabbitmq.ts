// One of several consumers that compete for a queue, each event through the inbox, acknowledged after COMMIT. It is
// killed at any moment, and what it had not acknowledged goes to the others.
import { connect } from 'amqplib'
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { createInbox } from '../../../src/inbox/inbox.ts'

export type Setup = {
  url: string
  rabbit: string
  queue: string
  name: string
  order: 'none' | 'aggregate'
}

const { url, rabbit, queue, name, order } = JSON.parse(process.argv[2]!) as Setup
const db = drizzle(postgres(url, { max: 5 }))
const inbox = createInbox({ db, consumer: 'billing', order })

const connection = await connect(rabbit)
const channel = await connection.createChannel()
await channel.prefetch(10)
await channel.consume(queue, async (message) => {
  if (!message) return
  const { outcome } = await inbox.once(message, async (tx, event) => {
    const { id, aggregateId, seq } = event
    console.log('handling')
    await tx.execute(sql`select pg_sleep(random() * 0.003)`)
    await tx.execute(sql`insert into effects (event_id, aggregate, seq, consumer)
      values (${id}, ${aggregateId}, ${seq}, ${name})`)
    await tx.execute(sql`select pg_sleep(random() * 0.003)`)
  })
  await db.execute(sql`insert into deliveries values (${name}, ${outcome})`)
  if (outcome === 'late') {
    await db.execute(sql`insert into late values (${message.properties.messageId as string})`)
  }
  channel.ack(message)
  console.log(outcome)
})
