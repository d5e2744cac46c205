// The service that takes orders, and hears when they are shipped.
import { createOutbox } from 'aftercommit'
import { createInbox } from 'aftercommit/inbox'
import { kafkaPublisher } from 'aftercommit/kafka'
import { otel } from 'aftercommit/otel'
import { postgresJs } from 'aftercommit/postgres-js'
import type { Kafka } from 'kafkajs'
import postgres from 'postgres'
import { orderEvents, shippingEvents, TOPICS } from './contract.ts'

export async function openOrders(databaseUrl: string, kafka: Kafka) {
  const sql = postgres(databaseUrl, { onnotice: () => {} })
  const db = postgresJs(sql)
  await sql`create table if not exists orders (id serial primary key, address text not null, carrier text)`
  const outbox = createOutbox({
    db,
    publisher: kafkaPublisher({ kafka }),
    events: orderEvents,
    telemetry: otel({ attributes: { service: 'orders' } }),
    migrate: true,
  })
  await outbox.start()

  const inbox = createInbox({
    db,
    consumer: 'orders',
    events: shippingEvents,
    telemetry: otel({ attributes: { service: 'orders' } }),
    migrate: true,
  })
  await inbox.start()
  const consumer = kafka.consumer({ groupId: 'orders' })
  await consumer.connect()
  await consumer.subscribe({ topic: TOPICS.shipments, fromBeginning: true })
  await consumer.run({
    eachMessage: async (message) => {
      await inbox.once(message, async (tx, event) => {
        const { orderId, carrier } = event.payload
        await tx`update orders set carrier = ${carrier} where id = ${orderId}`
      })
    },
  })

  return {
    placeOrder: (address: string) =>
      outbox.withOutbox(async (tx, emit) => {
        const [order] = await tx`insert into orders (address) values (${address}) returning id`
        const orderId = order!['id'] as number
        emit('OrderPlaced', { orderId, address })
        return orderId
      }),
    async carrierOf(orderId: number) {
      const [order] = await sql`select carrier from orders where id = ${orderId}`
      return order!['carrier'] as string | null
    },
    async close() {
      await consumer.disconnect()
      await Promise.all([inbox.stop(), outbox.stop()])
      await sql.end()
    },
  }
}
