// The example, end to end: two databases and a real Kafka. One trace, and one shipment however often the order arrives.
import type { Kafka } from 'kafkajs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDatabase, type TestDatabase } from '../../test/support/servers/database.ts'
import { createTopic } from '../../test/support/servers/topic-reader.ts'
import { uniqueName } from '../../test/support/doubles/unique-name.ts'
import { describeWithKafka, kafkaBrokers, quietKafka } from '../../test/support/fixture.ts'
import { readAll } from '../../test/support/conformance/kafka-conformance.ts'
import { waitUntil } from '../../test/support/timing/wait-until.ts'
import { drawTrace, inRequest, spansOf } from './tracing.ts'
import type * as Contract from './contract.ts'
import type { openOrders } from './orders.ts'
import type { openShipping } from './shipping.ts'

describeWithKafka('orders and shipping', () => {
  let databases: TestDatabase[]
  let kafka: Kafka
  let TOPICS: typeof Contract.TOPICS
  let orders: Awaited<ReturnType<typeof openOrders>>
  let shipping: Awaited<ReturnType<typeof openShipping>>

  beforeAll(async () => {
    databases = [await createDatabase(), await createDatabase()]
    process.env['TOPIC_PREFIX'] = `${uniqueName('example')}-`
    ;({ TOPICS } = await import('./contract.ts'))
    for (const topic of Object.values(TOPICS)) await createTopic(kafkaBrokers(), topic)
    kafka = quietKafka(kafkaBrokers())
    const services = [await import('./orders.ts'), await import('./shipping.ts')] as const
    ;[orders, shipping] = await Promise.all([
      services[0].openOrders(databases[0]!.url, kafka),
      services[1].openShipping(databases[1]!.url, kafka),
    ])
  })
  afterAll(async () => {
    await Promise.all([orders.close(), shipping.close()])
    await Promise.all(databases.map((database) => database.drop()))
  })

  it('lead an order there and back in one trace', async () => {
    const { orderId, traceId } = await inRequest('POST /orders', async (span) => {
      return { orderId: await orders.placeOrder('12 Canal Street'), ...span.spanContext() }
    })
    await waitUntil(() => orders.carrierOf(orderId), { message: 'the order is shipped' })
    const back = `process ${TOPICS.shipments}`
    await waitUntil(() => spansOf(traceId).some(({ name }) => name === back), { message: back })
    expect(drawTrace(spansOf(traceId))).toBe(
      [
        'POST /orders',
        `  create ${TOPICS.orders}`,
        `    send ${TOPICS.orders}`,
        `    process ${TOPICS.orders}`,
        `      create ${TOPICS.shipments}`,
        `        send ${TOPICS.shipments}`,
        `        process ${TOPICS.shipments}`,
        '',
      ].join('\n'),
    )
  })

  it('ship an order once that arrives twice', async () => {
    const { orderId, traceId } = await inRequest('POST /orders', async (span) => {
      return { orderId: await orders.placeOrder('3 Mill Lane'), ...span.spanContext() }
    })
    await waitUntil(() => orders.carrierOf(orderId), { message: 'the order is shipped' })
    const arrived = await readAll(TOPICS.orders)
    const { key, value, headers } = arrived.find((one) => one.key === String(orderId))!
    const producer = kafka.producer()
    await producer.connect()
    await producer.send({ topic: TOPICS.orders, messages: [{ key, value, headers }] })
    await producer.disconnect()
    const outcomes = () =>
      spansOf(traceId)
        .filter(({ name }) => name === `process ${TOPICS.orders}`)
        .map(({ attributes }) => attributes['aftercommit.inbox.outcome'])
    await waitUntil(() => outcomes().length === 2, { message: 'the second delivery' })
    expect(outcomes()).toEqual(['handled', 'duplicate'])
    expect(await shipping.shipmentsOf(orderId)).toEqual([{ address: '3 Mill Lane' }])
  })
})
