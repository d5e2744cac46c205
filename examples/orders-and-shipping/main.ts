// npm run example:orders-and-shipping: an order goes from one service to the other and back, in one trace.
import { Kafka, logLevel } from 'kafkajs'
import { createTopic } from '../../test/support/servers/topic-reader.ts'
import { waitUntil } from '../../test/support/timing/wait-until.ts'
import { besideDatabase, openDatabase, openKafka } from '../servers.ts'
import { TOPICS } from './contract.ts'
import { openOrders } from './orders.ts'
import { openShipping } from './shipping.ts'
import { drawTrace, inRequest, spansOf } from './tracing.ts'

const [database, broker] = await Promise.all([openDatabase(), openKafka()])
for (const topic of Object.values(TOPICS)) await createTopic(broker.brokers, topic)

const kafka = new Kafka({ brokers: broker.brokers, logLevel: logLevel.NOTHING })
const [orders, shipping] = await Promise.all([
  openOrders(await besideDatabase(database.url, 'orders'), kafka),
  openShipping(await besideDatabase(database.url, 'shipping'), kafka),
])

const { orderId, traceId } = await inRequest('POST /orders', async (span) => {
  return { orderId: await orders.placeOrder('12 Canal Street'), ...span.spanContext() }
})
console.log(`order ${orderId} is placed`)
const message = 'the order hears of its shipment'
console.log(`shipped with ${await waitUntil(() => orders.carrierOf(orderId), { message })}`)

await Promise.all([orders.close(), shipping.close()])
console.log(`\n${drawTrace(spansOf(traceId))}`)
await Promise.all([database.stop(), broker.stop()])
