import { inspect } from 'node:util'
import { type ChannelModel, connect } from 'amqplib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { PublishResult } from '../../../src/index.ts'
import { rabbitmqPublisher } from '../../../src/publishers/rabbitmq.ts'
import { describeWithRabbit, rabbitUrl } from '../../support/fixture.ts'
import { describePublisher } from '../../support/publisher-conformance.ts'
import { openRabbit, proxyRabbit, type Rabbit } from '../../support/rabbitmq.ts'
import { outboxEvent } from '../../support/sample-events.ts'
import { uniqueName } from '../../support/unique-name.ts'
import { waitUntil } from '../../support/wait-until.ts'

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
          return { topic, key, payload: JSON.parse(value), headers }
        }),
      poison: unroutable,
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
          message: expect.stringContaining(`'${topic}' (NO_ROUTE)`),
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
    ['throws', () => JSON.parse('{') as never, /route of .* failed/],
    ['answers nonsense', () => ({ exchange: 7 }) as never, /must be an object with exchange/],
  ])('makes an event whose route %s permanent, and no other', async (_, broken, message) => {
    const queue = await far.declareQueue()
    const publisher = open({ route: ({ type }) => (type === 'Odd' ? broken() : {}) })
    const events = [outboxEvent({ type: 'Odd' }), outboxEvent({ topic: queue })]
    const results = await publisher.publish(events)
    await publisher.disconnect?.()
    expect(results).toMatchObject([{ kind: 'permanent', error: { message } }, { ok: true }])
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
    const publisher = open({ route: ({ type }) => (type === 'Forbidden' ? { exchange } : {}) })
    const queue = await far.declareQueue()
    // For RabbitMQ the same refusal as that of a missing permission.
    const exchange = uniqueName('internal')
    await far.channel.assertExchange(exchange, 'fanout', { internal: true })
    const forbidden = () => outboxEvent({ type: 'Forbidden' })
    const results = await publisher.publish([
      outboxEvent({ topic: queue }),
      forbidden(),
      outboxEvent({ topic: queue }),
      forbidden(),
    ])
    expect(verdicts(results)).toEqual(['ok', 'permanent', 'ok', 'permanent'])
    expect(results[1]).toMatchObject({ error: { message: /ACCESS_REFUSED/ as never } })
    expect(verdicts(await publisher.publish([forbidden()]))).toEqual(['permanent'])
    expect(verdicts(await publisher.publish([outboxEvent({ topic: queue })]))).toEqual(['ok'])
    await publisher.disconnect?.()
    await far.channel.deleteExchange(exchange)
    expect(await far.read(queue)).toHaveLength(3)
  })

  it('waits for an exchange that is not there yet, and goes on elsewhere meanwhile', async () => {
    const exchange = uniqueName('later')
    const publisher = open({ route: ({ type }) => (type === 'Later' ? { exchange } : {}) })
    const queue = await far.declareQueue()
    const later = () => outboxEvent({ type: 'Later' })
    const now = () => outboxEvent({ topic: queue })
    for (let n = 0; n < 10; n += 1) {
      const results = await publisher.publish([now(), later(), now(), later(), now()])
      expect(verdicts(results)).toEqual(['ok', 'transient', 'ok', 'transient', 'ok'])
      expect(results[1]).toMatchObject({
        scope: 'topic',
        error: { message: expect.stringContaining(`no exchange '${exchange}'`) },
      })
    }
    // An aggregate whose earlier event is stuck does not go on elsewhere.
    const ofOne = [later(), now()].map((event) => ({ ...event, aggregateId: 'one' }))
    expect(verdicts(await publisher.publish(ofOne))).toEqual(['transient', 'held'])
    await far.declareExchange(exchange)
    expect(verdicts(await publisher.publish(ofOne))).toEqual(['ok', 'ok'])
    await publisher.disconnect?.()
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
      gone.map(() => ({ kind: 'transient', scope: 'topic' })),
    )
    expect(verdicts(results.slice(50))).toEqual(there.map(() => 'ok'))
    await far.declareExchange(exchange)
    expect(verdicts(await publisher.publish(gone))).toEqual(gone.map(() => 'ok'))
    await publisher.disconnect?.()
    expect(await far.read(exchange)).toHaveLength(51)
  })

  it('goes on when RabbitMQ closes the channel of a busy connection again and again', async () => {
    const publisher = open({ route: ({ headers }) => ({ exchange: headers['exchange'] ?? '' }) })
    const queue = await far.declareQueue()
    const payload = JSON.stringify('x'.repeat(100_000))
    for (let n = 0; n < 5; n += 1) {
      const exchange = await far.declareExchange()
      const doomed = () => outboxEvent({ headers: { exchange }, payload })
      expect(verdicts(await publisher.publish([doomed()]))).toEqual(['ok'])
      await far.channel.deleteExchange(exchange)
      const busy = Array.from({ length: 40 }, () => outboxEvent({ topic: queue, payload }))
      const [refused, rest] = await Promise.all([
        publisher.publish(Array.from({ length: 40 }, doomed)),
        publisher.publish(busy),
      ])
      expect(new Set(verdicts(refused))).toEqual(new Set(['transient']))
      expect(new Set(verdicts(rest))).toEqual(new Set(['ok']))
    }
    await publisher.disconnect?.()
    expect(await far.read(queue)).toHaveLength(200)
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
      { kind: 'transient', scope: 'topic', error: { message: /nack/ as never } },
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

  it('lets amqplib ask for a pause, and sends thousands at once without losing one', async () => {
    const publisher = open()
    const queue = await far.declareQueue()
    const events = Array.from({ length: 3_000 }, () =>
      outboxEvent({ topic: queue, payload: JSON.stringify('x'.repeat(3_000)) }),
    )
    const results = await publisher.publish(events)
    await publisher.disconnect?.()
    expect(results.every(({ ok }) => ok)).toBe(true)
    const ids = (await far.read(queue)).map(({ id }) => id)
    expect(new Set(ids)).toEqual(new Set(events.map(({ id }) => id)))
    expect(ids).toHaveLength(events.length)
  })

  it('opens one connection however many send at once, and one more after it died', async () => {
    const made: ChannelModel[] = []
    const publisher = rabbitmqPublisher({
      connect: async () => {
        const connection = await connect(rabbitUrl())
        made.push(connection)
        return connection
      },
    })
    const queue = await far.declareQueue()
    const publishAll = () =>
      Promise.all(
        Array.from({ length: 20 }, () => publisher.publish([outboxEvent({ topic: queue })])),
      )
    expect(verdicts((await publishAll()).flat())).toEqual(Array(20).fill('ok'))
    expect(made).toHaveLength(1)
    const closed = new Promise((resolve) => made[0]!.once('close', resolve))
    await made[0]!.close()
    await closed
    expect(verdicts((await publishAll()).flat())).toEqual(Array(20).fill('ok'))
    expect(made).toHaveLength(2)
    await publisher.disconnect?.()
  })

  it('sends nothing on a connection that RabbitMQ has blocked, and goes on when it is free', async () => {
    // An alarm for memory or disk would stop the whole server, so the connection is told by the test that
    // there is one; everything else is real.
    let connection: ChannelModel | undefined
    const publisher = rabbitmqPublisher({
      connect: async () => (connection = await connect(rabbitUrl())),
    })
    const queue = await far.declareQueue()
    const publish = () => publisher.publish([outboxEvent({ topic: queue })])
    expect(verdicts(await publish())).toEqual(['ok'])
    connection!.emit('blocked', 'low on memory')
    expect(await publish()).toMatchObject([
      { kind: 'transient', scope: 'broker', error: { message: /low on memory/ as never } },
    ])
    connection!.emit('unblocked')
    expect(verdicts(await publish())).toEqual(['ok'])
    await publisher.disconnect?.()
    expect(await far.read(queue)).toHaveLength(2)
  })

  it('closes the connection it opened, and no other', async () => {
    let own: ChannelModel | undefined
    const publisher = rabbitmqPublisher({ connect: async () => (own = await connect(rabbitUrl())) })
    await publisher.connect?.()
    const closed = new Promise((resolve) => own!.once('close', resolve))
    await publisher.disconnect?.()
    await closed
    expect(await far.declareQueue()).toBeTypeOf('string')
  })

  it('reports a server that cannot be reached as transient, without a word of the password', async () => {
    const password = 'do-not-show-me'
    const refused = new URL(rabbitUrl())
    refused.password = password
    for (const url of [`amqp://me:${password}@127.0.0.1:1`, refused.href]) {
      const publisher = rabbitmqPublisher({ url })
      const [result] = await publisher.publish([outboxEvent()])
      expect(result).toMatchObject({ kind: 'transient', scope: 'broker' })
      await expect(publisher.connect?.()).rejects.toThrow(/ECONNREFUSED|ACCESS_REFUSED/)
      await publisher.disconnect?.()
      expect(inspect(result, { depth: 9, showHidden: true })).not.toContain(password)
    }
    const broken = () => rabbitmqPublisher({ url: `http://me:${password}@host` })
    expect(broken).toThrow(/url must be one of RabbitMQ's/)
    expect(broken).not.toThrow(new RegExp(password))
  })

  it('connects again by itself after a first try that failed, a cut, and a silence', async () => {
    const { proxy, url } = await proxyRabbit(rabbitUrl())
    const publisher = rabbitmqPublisher({ url, connectTimeout: '1s', confirmTimeout: '1s' })
    const queue = await far.declareQueue()
    const publish = async () => verdicts(await publisher.publish([outboxEvent({ topic: queue })]))
    await proxy.refuse()
    expect(await publish()).toEqual(['transient'])
    await proxy.accept()
    expect(await publish()).toEqual(['ok'])
    proxy.cut()
    await waitUntil(async () => (await publish())[0] === 'ok', { message: 'it connected again' })
    proxy.halfOpen()
    // The connection there is, and then one that is new.
    expect(await publish()).toEqual(['transient'])
    expect(await publish()).toEqual(['transient'])
    await proxy.accept()
    expect(await publish()).toEqual(['ok'])
    await publisher.disconnect?.()
    await proxy.stop()
  })

  it('leaves a connection that has gone silent for another, and still hears its late confirms', async () => {
    const { proxy, url } = await proxyRabbit(rabbitUrl())
    let connections = 0
    const publisher = rabbitmqPublisher({
      connect: async () => {
        connections += 1
        return await connect(url)
      },
    })
    const queue = await far.declareQueue()
    const settled: string[] = []
    const publish = async (payload: string) => {
      const results = await publisher.publish([outboxEvent({ topic: queue, payload })])
      settled.push(`${payload} ${String(verdicts(results))}`)
    }
    await publish('1')
    // Each chunk is held back for as long as was asked for when it came, and those behind it with it.
    const held = new Promise<void>((resolve) => {
      proxy.intercept(() => {
        resolve()
        return 'forward'
      })
    })
    proxy.delay(12_000)
    const slow = publish('2')
    await held
    proxy.delay(0)
    let last: Promise<void> | undefined
    let tries = 0
    await waitUntil(
      () => {
        if (connections === 1) last = publish(`try ${(tries += 1)}`)
        return connections === 2
      },
      { message: 'a connection was opened beside the silent one' },
    )
    await last
    expect(settled).toEqual(['1 ok', `try ${tries} ok`])
    await slow
    await waitUntil(() => settled.length === tries + 2, { message: 'the held ones were confirmed' })
    expect(settled.filter((one) => !one.endsWith(' ok'))).toEqual([])
    await publisher.disconnect?.()
    await proxy.stop()
    expect(await far.read(queue)).toHaveLength(tries + 2)
  })
})

describeWithRabbit('rabbitmqPublisher, when a confirm does not come', () => {
  let far: Rabbit
  beforeAll(async () => {
    far = await openRabbit(rabbitUrl())
  })
  afterAll(() => far.close())

  // A queue that takes a message and never confirms it has to have lost most of its cluster. Here the channel keeps
  // what is for that queue to itself; everything else is real.
  async function withStuckQueue(confirmTimeout: `${number}ms`) {
    const [queue, stuck] = [await far.declareQueue(), uniqueName('stuck')]
    const made: ChannelModel[] = []
    async function connectStuck() {
      const connection = await connect(rabbitUrl())
      made.push(connection)
      const createConfirmChannel = connection.createConfirmChannel.bind(connection)
      connection.createConfirmChannel = async (options) => {
        const channel = await createConfirmChannel(options)
        const publish = channel.publish.bind(channel)
        channel.publish = (...args) => args[1] === stuck || publish(...args)
        return channel
      }
      return connection
    }
    const publisher = rabbitmqPublisher({ connect: connectStuck, confirmTimeout })
    return { publisher, queue, stuck, made }
  }

  it('blames the queue while the connection answers, and keeps the connection', async () => {
    const { publisher, queue, stuck, made } = await withStuckQueue('500ms')
    const event = (topic: string) => outboxEvent({ topic, aggregateId: topic })
    const results = await publisher.publish([stuck, queue, stuck].map(event))
    expect(results).toMatchObject([
      { kind: 'transient', scope: 'topic', error: { message: /did not confirm/ as never } },
      { ok: true },
      { kind: 'held' },
    ])
    expect(verdicts(await publisher.publish([event(queue)]))).toEqual(['ok'])
    await publisher.disconnect?.()
    expect(made).toHaveLength(1)
  })

  it('keeps a blocked connection, so that what lies before RabbitMQ is not sent there again', async () => {
    const { publisher, queue, stuck, made } = await withStuckQueue('500ms')
    const waiting = publisher.publish([outboxEvent({ topic: stuck })])
    await waitUntil(() => made.length === 1, { message: 'it connected' })
    made[0]!.emit('blocked', 'low on disk')
    expect(await waiting).toMatchObject([{ kind: 'transient', scope: 'broker' }])
    made[0]!.emit('unblocked')
    expect(verdicts(await publisher.publish([outboxEvent({ topic: queue })]))).toEqual(['ok'])
    await publisher.disconnect?.()
    expect(made).toHaveLength(1)
  })

  it('gets to the rest of a long aggregate in another batch, when this one has taken its time', async () => {
    const { publisher, queue } = await withStuckQueue('1ms')
    const events = Array.from({ length: 50 }, () => outboxEvent({ topic: queue, aggregateId: '1' }))
    const results = await publisher.publish(events)
    await publisher.disconnect?.()
    expect(results.at(-1)).toMatchObject({ ok: false, kind: 'held' })
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
