// With a catalog: events arrive with all that their declarations say, on both paths, and what a schema refuses
// leaves nothing behind.
import { inspect } from 'node:util'
import { sql as raw } from 'drizzle-orm'
import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineEvents, event } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import { describeWithKafka, kafkaBrokers, quietKafka, useFixture } from '../../support/fixture.ts'
import { createTopic, readTopic, type TopicReader } from '../../support/servers/topic-reader.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { nextEvent } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
const SECRET = 'hunter2'
const [orders, invoices] = [uniqueName('orders'), uniqueName('invoices')]

const events = defineEvents({
  OrderPlaced: event<{ orderId: number }>({
    aggregate: 'order',
    key: (e) => e.orderId,
    topic: orders,
  }),
  OrderCompleted: event({
    schema: z.object({
      id: z.string(),
      items: z.array(z.object({ price: z.coerce.number(), note: z.string().default('none') })),
    }),
    aggregate: 'order',
    key: (e) => e.id,
    topic: orders,
    headers: { source: 'shop', tenant: 'none' },
    maxAttempts: 3,
    version: 2,
  }),
  InvoiceSent: event({
    schema: v.object({
      id: v.number(),
      tags: v.optional(v.record(v.string(), v.boolean()), { none: true }),
    }),
    aggregate: 'invoice',
    key: (e) => e.id,
    topic: invoices,
  }),
})

describeWithKafka('on Kafka', () => {
  let readers: TopicReader[]
  beforeAll(async () => {
    await Promise.all([orders, invoices].map((topic) => createTopic(kafkaBrokers(), topic)))
    readers = await Promise.all([orders, invoices].map((topic) => readTopic(kafkaBrokers(), topic)))
  })
  afterAll(() => Promise.all(readers.map((reader) => reader.stop())))
  /** What arrived in either topic, by event id. */
  const arrivals = async () => {
    const logs = await Promise.all(readers.map((reader) => reader.readToEnd()))
    const named = logs.flatMap((messages, index) =>
      messages.map((message) => ({ topic: [orders, invoices][index], ...message })),
    )
    return new Map(named.map((message) => [message.headers['event-id']!, message]))
  }
  const open = () =>
    fixture.outbox({ events, publisher: kafkaPublisher({ kafka: quietKafka(kafkaBrokers()) }) })

  it.each(['immediate', 'fallback'])('declared events arrive as declared, %s', async (path) => {
    const outbox = open()
    if (path === 'immediate') await outbox.start()
    let left = 4
    const published = nextEvent(outbox.events, 'event:published', () => (left -= 1) === 0)

    const ids = await outbox.withOutbox((_, emit) => [
      outbox.emit('OrderPlaced', { orderId: 7 }, { correlationId: 'c-0' }),
      emit(
        'OrderCompleted',
        { id: 'o-1', items: [{ price: '2.5' }] },
        {
          headers: { tenant: 'acme' },
          correlationId: 'c-1',
          traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        },
      ),
      ...outbox.emit([
        { type: 'InvoiceSent', payload: { id: 17 } },
        { type: 'InvoiceSent', payload: { id: 18, tags: {} }, topic: orders, maxAttempts: 1 },
      ]),
    ])
    const rows = await fixture.sql`select event_type, max_attempts from outbox order by seq`
    expect(rows.map((row) => row['max_attempts'])).toEqual([10, 3, 10, 1])
    if (path === 'fallback') await outbox.pollOnce()
    await published

    const arrived = await arrivals()
    const [placed, completed, sent, elsewhere] = ids.map((id) => arrived.get(id)!)
    expect(placed).toMatchObject({ topic: orders, key: '7', value: '{"orderId":7}' })
    expect(placed!.headers['correlation-id']).toBe('c-0')
    expect(placed!.headers).not.toHaveProperty('event-version')
    expect(completed).toMatchObject({
      topic: orders,
      key: 'o-1',
      value: '{"id":"o-1","items":[{"price":2.5,"note":"none"}]}',
      headers: {
        'event-type': 'OrderCompleted',
        'event-version': '2',
        'aggregate-type': 'order',
        'aggregate-id': 'o-1',
        'correlation-id': 'c-1',
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        tenant: 'acme',
        source: 'shop',
      },
    })
    expect(sent).toMatchObject({
      topic: invoices,
      key: '17',
      value: '{"id":17,"tags":{"none":true}}',
      headers: { 'aggregate-type': 'invoice' },
    })
    expect(elsewhere).toMatchObject({ topic: orders, key: '18', value: '{"id":18,"tags":{}}' })
  })
})

describe('what is refused', () => {
  const unexpected = () => expect.unreachable('nothing was committed')
  const handlers = { OrderPlaced: unexpected, OrderCompleted: unexpected }
  const open = () => fixture.outbox({ events, publisher: handlersPublisher({ events, handlers }) })
  const wrong = { id: 'o-1', items: [{ price: 1 }, { price: SECRET }] }
  beforeAll(() => fixture.sql`create table business (id int primary key)`)

  it.each([
    ['PAYLOAD_INVALID', ['OrderCompleted', wrong], /OrderCompleted: .* at 'items\[1\]\.price';/],
    ['EVENT_UNKNOWN', ['OrderComplete', wrong], /did you mean 'OrderCompleted'\?/],
    ['EVENT_INVALID', ['OrderPlaced', { secret: SECRET }], /key\(\) must return/],
  ])('leaves nothing with %s, even if somebody catches it', async (code, given, message) => {
    const outbox = open()
    await outbox.start()
    for (const catches of [false, true]) {
      const work = outbox.withOutbox(async (tx, emit) => {
        await tx.execute(raw`insert into business values (1)`)
        emit('OrderPlaced', { orderId: 1 })
        try {
          emit(...(given as ['OrderPlaced', { orderId: number }]))
        } catch (error) {
          if (!catches) throw error
        }
      })
      const error: unknown = await work.catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ name: 'EventRefusedError', code })
      expect(error).toMatchObject({ message: expect.stringMatching(message) as string })
      expect(inspect(error)).not.toContain(SECRET)
    }
    expect(await fixture.rows()).toEqual([])
    expect(await fixture.sql`select id from business`).toEqual([])
  })

  it('takes only its savepoint along, if that is rolled back', async () => {
    const outbox = open()
    await outbox.withOutbox(async (tx, emit) => {
      emit('OrderPlaced', { orderId: 1 })
      const inner = tx.transaction(async () => outbox.emit('OrderCompleted', wrong as never))
      await expect(inner).rejects.toMatchObject({ code: 'PAYLOAD_INVALID' })
    })
    expect((await fixture.rows()).map((row) => row.event_type)).toEqual(['OrderPlaced'])
  })

  it('is refused as a whole where one of many does not fit', async () => {
    const work = open().withOutbox((_, emit) =>
      emit([
        { type: 'OrderPlaced', payload: { orderId: 1 } },
        { type: 'OrderCompleted', payload: wrong },
      ]),
    )
    await expect(work).rejects.toMatchObject({ code: 'PAYLOAD_INVALID' })
    expect(await fixture.rows()).toEqual([])
  })
})
