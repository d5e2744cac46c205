// The service that ships, with a database of its own: it handles each order once, and says so, in one transaction.
import { createOutbox } from 'aftercommit'
import { createInbox } from 'aftercommit/inbox'
import { kafkaPublisher } from 'aftercommit/kafka'
import { otel } from 'aftercommit/otel'
import { postgresJs } from 'aftercommit/postgres-js'
import type { Kafka } from 'kafkajs'
import postgres from 'postgres'
import { orderEvents, shippingEvents, TOPICS } from './contract.ts'

export async function openShipping(databaseUrl: string, kafka: Kafka) {
  const sql = postgres(databaseUrl, { onnotice: () => {} })
  const db = postgresJs(sql)
  await sql`create table if not exists shipments (id serial primary key, order_id integer not null, address text not null)`
  const outbox = createOutbox({
    db,
    publisher: kafkaPublisher({ kafka }),
    events: shippingEvents,
    telemetry: otel({ attributes: { service: 'shipping' } }),
    migrate: true,
  })
  const inbox = createInbox({
    db,
    consumer: 'shipping',
    events: orderEvents,
    telemetry: otel({ attributes: { service: 'shipping' } }),
    migrate: true,
  })
  await Promise.all([outbox.start(), inbox.start()])

  const consumer = kafka.consumer({ groupId: 'shipping' })
  await consumer.connect()
  await consumer.subscribe({ topic: TOPICS.orders, fromBeginning: true })
  await consumer.run({
    eachMessage: async (message) => {
      await outbox.withOutbox((tx, emit) =>
        inbox.onceIn(tx, message, async (_tx, event) => {
          const { orderId, address } = event.payload
          await tx`insert into shipments (order_id, address) values (${orderId}, ${address})`
          emit('ShipmentBooked', { orderId, carrier: 'Otter Express' })
        }),
      )
    },
  })

  return {
    async shipmentsOf(orderId: number) {
      return await sql`select address from shipments where order_id = ${orderId}`
    },
    async close() {
      await consumer.disconnect()
      await Promise.all([inbox.stop(), outbox.stop()])
      await sql.end()
    },
  }
}
