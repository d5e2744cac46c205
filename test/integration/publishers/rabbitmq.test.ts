import { connect } from 'amqplib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { PublishResult } from '../../../src/index.ts'
import { rabbitmqPublisher } from '../../../src/publishers/rabbitmq/rabbitmq-publisher.ts'
import { describeWithRabbit, rabbitUrl } from '../../support/fixture.ts'
import { describePublisher } from '../../support/conformance/publisher-conformance.ts'
import { openRabbit, type Rabbit } from '../../support/servers/rabbitmq.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const verdicts = (results: readonly PublishResult[]) =>
  results.map((result) => (result.ok ? 'ok' : result.kind))
const unroutable = () => outboxEvent({ topic: uniqueName('nowhere') })

describeWithRabbit('rabbitmqPublisher', () => {
  describePublisher('rabbitmqPublisher', async () => {
    const far = await openRabbit(rabbitUrl())
    return {
      publisher: rabbitmqPublisher({ url: rabbitUrl() }),
      openTopic: () => far.declareQueue(),
      arrivals: async (topic) =>
        (await far.read(topic)).map(({ key, value, headers }) => {
          return { key, payload: JSON.parse(value), headers }
        }),
      poison: (event) => ({ ...event, topic: uniqueName('nowhere') }),
      close: () => far.close(),
    }
  })
})

describeWithRabbit('rabbitmqPublisher, on a real server', () => {
  let far: Rabbit
  beforeAll(async () => {
    far = await openRabbit(rabbitUrl())
  })
  afterAll(() => far.close())

  const open = (options: Partial<Parameters<typeof rabbitmqPublisher>[0]> = {}) =>
    rabbitmqPublisher({ url: rabbitUrl(), ...options })

  it('sends persistent JSON with the id, type and time of the event', async () => {
    const publisher = open()
    const queue = await far.declareQueue()
    const event = outboxEvent({ topic: queue, headers: { tenant: 'acme' } })
    const [result] = await publisher.publish([event])
    await publisher.disconnect?.()
    expect(result).toEqual({
      ok: true,
      topic: queue,
      key: event.aggregateId,
      partition: null,
      offset: null,
    })
    const [message] = await far.read(queue)
    expect(message).toMatchObject({
      value: event.payload,
      properties: {
        deliveryMode: 2,
        contentType: 'application/json',
        messageId: event.id,
        type: 'OrderCompleted',
        timestamp: Math.floor(event.occurredAt.getTime() / 1_000),
      },
    })
    expect(message?.headers).toEqual({
      tenant: 'acme',
      'event-id': event.id,
      'event-type': 'OrderCompleted',
      'event-seq': '1',
      'event-lane': String(event.lane),
      'aggregate-type': 'order',
      'aggregate-id': event.aggregateId,
      'occurred-at': '2026-01-02T03:04:05.678Z',
    })
  })

  it('takes an event of a time before all timestamps', async () => {
    const publisher = open()
    const queue = await far.declareQueue()
    const event = outboxEvent({ topic: queue, occurredAt: new Date('1815-12-10T00:00:00Z') })
    expect(verdicts(await publisher.publish([event]))).toEqual(['ok'])
    await publisher.disconnect?.()
    expect((await far.read(queue))[0]?.headers['occurred-at']).toBe('1815-12-10T00:00:00.000Z')
  })

  it('makes an event that no queue gets permanent, and says what is missing', async () => {
    const publisher = open()
    const [first, second] = [unroutable(), unroutable()]
    const results = await publisher.publish([first, second])
    await publisher.disconnect?.()
    for (const [n, { topic }] of [first, second].entries()) {
      expect(results[n]).toMatchObject({
        kind: 'permanent',
        error: {
          code: 'PUBLISH_FAILED',
          message: `RabbitMQ found no queue '${topic}' (NO_ROUTE); declare it, or correct the route`,
        },
      })
    }
  })

  it('tells among many which of them had no queue', async () => {
    const publisher = open()
    const queue = await far.declareQueue()
    const events = Array.from({ length: 300 }, (_, n) =>
      n % 7 === 0 ? unroutable() : outboxEvent({ topic: queue, payload: String(n) }),
    )
    const results = await publisher.publish(events)
    await publisher.disconnect?.()
    expect(verdicts(results)).toEqual(events.map((_, n) => (n % 7 === 0 ? 'permanent' : 'ok')))
    expect(await far.read(queue)).toHaveLength(results.filter(({ ok }) => ok).length)
  })

  it('sends by route, and by exchange and topic where there is none', async () => {
    const [usual, special] = [await far.declareExchange(), await far.declareExchange()]
    const publisher = open({
      exchange: usual,
      route: ({ type }) =>
        type === 'Special' ? { exchange: special, routingKey: 'very.special' } : {},
    })
    const results = await publisher.publish([
      outboxEvent({ topic: 'orders', payload: '1' }),
      outboxEvent({ type: 'Special', payload: '2' }),
    ])
    await publisher.disconnect?.()
    expect(verdicts(results)).toEqual(['ok', 'ok'])
    expect((await far.read(usual)).map(({ value }) => value)).toEqual(['1'])
    expect((await far.read(special)).map(({ value }) => value)).toEqual(['2'])
  })

  it.each([
    ['throws', () => JSON.parse('{') as never, /route of .* failed with SyntaxError$/],
    ['answers nonsense', () => ({ exchange: 7 }) as never, /must be an object with exchange/],
  ])('makes an event whose route %s permanent, and no other', async (_, broken, message) => {
    const queue = await far.declareQueue()
    const publisher = open({ route: ({ type }) => (type === 'Odd' ? broken() : {}) })
    const events = [outboxEvent({ type: 'Odd' }), outboxEvent({ topic: queue })]
    const results = await publisher.publish(events)
    await publisher.disconnect?.()
    expect(results).toMatchObject([
      { kind: 'permanent', error: { message: expect.stringMatching(message) } },
      { ok: true },
    ])
  })

  it('makes what AMQP cannot carry permanent, and nothing beside it', async () => {
    const publisher = open()
    const queue = await far.declareQueue()
    const events = [
      outboxEvent({ topic: queue }),
      outboxEvent({ topic: queue, headers: { large: 'x'.repeat(70_000) } }),
      outboxEvent({ topic: queue, headers: { ['n'.repeat(300)]: 'x' } }),
      outboxEvent({ topic: 'k'.repeat(256) }),
      outboxEvent({ topic: queue, headers: { CC: 'elsewhere' } }),
      outboxEvent({ topic: queue }),
    ]
    const results = await publisher.publish(events)
    await publisher.disconnect?.()
    expect(verdicts(results)).toEqual(['ok', ...Array.from({ length: 4 }, () => 'permanent'), 'ok'])
    expect(await far.read(queue)).toHaveLength(2)
  })

  it('makes events for an exchange that may not be used permanent, and no others', async () => {
    const exchange = await far.declareForbiddenExchange()
    const publisher = open({ route: ({ type }) => (type === 'Forbidden' ? { exchange } : {}) })
    const queue = await far.declareQueue()
    const forbidden = () => outboxEvent({ type: 'Forbidden' })
    const results = await publisher.publish([
      outboxEvent({ topic: queue }),
      forbidden(),
      outboxEvent({ topic: queue }),
      forbidden(),
    ])
    expect(verdicts(results)).toEqual(['ok', 'permanent', 'ok', 'permanent'])
    expect(results[1]).toMatchObject({
      error: { message: expect.stringMatching(/ACCESS_REFUSED/) },
    })
    expect(verdicts(await publisher.publish([forbidden()]))).toEqual(['permanent'])
    expect(verdicts(await publisher.publish([outboxEvent({ topic: queue })]))).toEqual(['ok'])
    await publisher.disconnect?.()
    expect(await far.read(queue)).toHaveLength(3)
  })

  it('waits for an exchange that is not there yet, and goes on elsewhere meanwhile', async () => {
    const exchange = uniqueName('later')
    let connections = 0
    const publisher = rabbitmqPublisher({
      connect: async () => {
        connections += 1
        return await connect(rabbitUrl())
      },
      route: ({ type }) => (type === 'Later' ? { exchange } : {}),
    })
    const queue = await far.declareQueue()
    const later = (of: object = {}) => outboxEvent({ type: 'Later', ...of })
    const now = (of: object = {}) => outboxEvent({ topic: queue, ...of })
    for (let n = 0; n < 10; n += 1) {
      const results = await publisher.publish([now(), later(), now(), later(), now()])
      expect(verdicts(results)).toEqual(['ok', 'transient', 'ok', 'transient', 'ok'])
      expect(results[1]).toMatchObject({
        blames: 'topic',
        error: { message: expect.stringContaining(`no exchange '${exchange}'`) },
      })
    }
    // An aggregate whose earlier event is stuck does not go on elsewhere.
    const ofOne = [later({ aggregateId: 'one' }), now({ aggregateId: 'one' })]
    expect(verdicts(await publisher.publish(ofOne))).toEqual(['transient', 'held'])
    await far.declareExchange(exchange)
    expect(verdicts(await publisher.publish(ofOne))).toEqual(['ok', 'ok'])
    await publisher.disconnect?.()
    expect(connections).toBe(1)
    expect(await far.read(queue)).toHaveLength(31)
  })

  it('reports what was on its way to an exchange that vanished, and only that, as unsent', async () => {
    const exchange = await far.declareExchange()
    const publisher = open({ route: ({ type }) => (type === 'Gone' ? { exchange } : {}) })
    const queue = await far.declareQueue()
    const gone = Array.from({ length: 50 }, () => outboxEvent({ type: 'Gone' }))
    const there = Array.from({ length: 50 }, () => outboxEvent({ topic: queue }))
    expect(verdicts(await publisher.publish([gone[0]!, there[0]!]))).toEqual(['ok', 'ok'])
    await far.channel.deleteExchange(exchange)
    const results = await publisher.publish([...gone, ...there])
    expect(results.slice(0, 50)).toMatchObject(
      gone.map(() => ({ kind: 'transient', blames: 'topic' })),
    )
    expect(verdicts(results.slice(50))).toEqual(there.map(() => 'ok'))
    await far.declareExchange(exchange)
    expect(verdicts(await publisher.publish(gone))).toEqual(gone.map(() => 'ok'))
    await publisher.disconnect?.()
    expect(await far.read(exchange)).toHaveLength(51)
  })

  it('disturbs nobody else when RabbitMQ closes a channel that has much to write', async () => {
    const publisher = open({ route: ({ headers }) => ({ exchange: headers['exchange'] ?? '' }) })
    const queue = await far.declareQueue()
    const payload = JSON.stringify('x'.repeat(900_000))
    for (let n = 0; n < 3; n += 1) {
      const [gone, fresh] = [await far.declareExchange(), await far.declareExchange()]
      const doomed = () => outboxEvent({ headers: { exchange: gone }, payload })
      expect(verdicts(await publisher.publish([doomed()]))).toEqual(['ok'])
      await far.channel.deleteExchange(gone)
      const beside = publisher.publish([outboxEvent({ topic: queue, payload })])
      const refused = await publisher.publish(Array.from({ length: 30 }, doomed))
      // At once, while frames for the exchange that is gone wait in amqplib's buffers.
      const after = await publisher.publish([
        outboxEvent({ headers: { exchange: fresh } }),
        outboxEvent({ topic: queue }),
      ])
      expect(new Set(verdicts(refused))).toEqual(new Set(['transient']))
      expect(verdicts([...(await beside), ...after])).toEqual(['ok', 'ok', 'ok'])
      expect(await far.read(fresh)).toHaveLength(1)
    }
    await publisher.disconnect?.()
    expect(await far.read(queue)).toHaveLength(6)
  })

  it('holds what follows a nack, which a full queue gives, and calls it transient', async () => {
    const publisher = open()
    const queue = await far.declareQueue(uniqueName('full'), {
      'x-max-length': 1,
      'x-overflow': 'reject-publish',
    })
    const events = [1, 2, 3, 4].map((n) => {
      return outboxEvent({ topic: queue, aggregateId: 'one', payload: String(n) })
    })
    const results = await publisher.publish(events)
    const stuck = results.findIndex(({ ok }) => !ok)
    expect(results.slice(stuck)).toMatchObject([
      { kind: 'transient', blames: 'topic', error: { message: expect.stringMatching(/nack/) } },
      ...results.slice(stuck + 1).map(() => ({ kind: 'held' })),
    ])
    const arrived = () => far.read(queue).then((messages) => messages.map(({ value }) => value))
    expect(await arrived()).toEqual(events.slice(0, stuck).map(({ payload }) => payload))
    let rest = events.slice(stuck)
    await waitUntil(
      async () => {
        rest = rest.slice((await publisher.publish(rest)).filter(({ ok }) => ok).length)
        await arrived()
        return rest.length === 0
      },
      { message: 'the queue took everything' },
    )
    await publisher.disconnect?.()
    expect(await arrived()).toEqual(['1', '2', '3', '4'])
  })

  it('sends an event once that it is given twice at the same time', async () => {
    const publisher = open()
    const event = outboxEvent({ topic: await far.declareQueue() })
    const results = await Promise.all([publisher.publish([event]), publisher.publish([event])])
    await publisher.disconnect?.()
    expect(verdicts(results.flat())).toEqual(['ok', 'ok'])
    expect(await far.read(event.topic)).toHaveLength(1)
  })
})

it('reckons with an event that is taken on last and needs all the time there is', () => {
  const publisher = rabbitmqPublisher({
    url: 'amqp://localhost',
    connectTimeout: '3s',
    confirmTimeout: '20s',
  })
  expect(publisher.settlesWithinMs).toBeGreaterThanOrEqual(20_000 + 3 * 3_000 + 20_000)
})

it('wants either a url or a way to connect, and says what is wrong with the rest', () => {
  const url = 'amqp://localhost'
  expect(() => rabbitmqPublisher({})).toThrow(/takes either url or connect/)
  expect(() => rabbitmqPublisher({ url, connect: async () => null as never })).toThrow(/either/)
  expect(() => rabbitmqPublisher({ connect: {} as never })).toThrow(/connect must be a function/)
  expect(() => rabbitmqPublisher({ url, route: 'orders' as never })).toThrow(/route must be/)
  expect(() => rabbitmqPublisher({ url, exchange: 7 as never })).toThrow(/exchange must be/)
  expect(() => rabbitmqPublisher({ url, exchnage: '' } as never)).toThrow(/did you mean 'exchange'/)
  expect(() => rabbitmqPublisher({ url, confirmTimeout: 0 })).toThrow(/confirmTimeout must be/)
})

it.each([
  ['amqp://me:secret@localhost', 'a string; write rabbitmqPublisher({ url })'],
  [new URL('amqp://me:secret@localhost'), 'a URL; write rabbitmqPublisher({ url: url.href })'],
  [async () => {}, 'a function; write rabbitmqPublisher({ connect })'],
  [{ createConfirmChannel() {} }, 'a connection; write rabbitmqPublisher({ connect: () => '],
])(
  'says what to write when it gets a URL or a connection without braces: case %#',
  (given, text) => {
    expect(() => rabbitmqPublisher(given as never)).toThrow(text)
    expect(() => rabbitmqPublisher(given as never)).not.toThrow(/secret/)
  },
)
