// RabbitMQ away, cut off and silent under an outbox at work: nobody pays with attempts, nothing is lost, nothing
// overtakes, and what arrives twice is what RabbitMQ took without its confirm getting through.
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Outbox } from '../../../src/index.ts'
import { rabbitmqPublisher } from '../../../src/publishers/rabbitmq/rabbitmq-publisher.ts'
import { describeWithRabbit, rabbitUrl, useFixture } from '../../support/fixture.ts'
import {
  openRabbit,
  proxyRabbit,
  type Rabbit,
  type RabbitMessage,
} from '../../support/servers/rabbitmq.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import type { TcpProxy } from '../../support/servers/tcp-proxy.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

/** Long enough for a slow machine to keep its leases. */
const QUICK = {
  threshold: '4s',
  publishTimeout: '2s',
  poller: true,
  pollInterval: '100ms',
} as const
const AGGREGATES = 5

describeWithRabbit('RabbitMQ in trouble', () => {
  let far: Rabbit
  let proxy: TcpProxy
  let url: string
  let queue: string
  beforeEach(async () => {
    far = await openRabbit(rabbitUrl())
    queue = await far.declareQueue()
    const proxied = await proxyRabbit(rabbitUrl())
    proxy = proxied.proxy
    url = proxied.url
  })
  afterEach(async () => {
    await proxy.stop()
    await far.close()
  })

  const publisher = () =>
    rabbitmqPublisher({ url, connectTimeout: '1500ms', confirmTimeout: '2500ms' })

  async function commit(outbox: Outbox, from: number, to: number): Promise<void> {
    for (let n = from; n < to; n += 1) {
      await outbox.withOutbox(async (_, emit) => {
        emit(newEvent({ aggregateId: `order-${n % AGGREGATES}`, payload: n, topic: queue }))
      })
    }
  }

  const allPublished = () =>
    waitUntil(async () => (await fixture.rows()).every(({ status }) => status === 'published'), {
      message: 'everything was published',
      timeoutMs: 50_000,
    })

  async function expectInOrder(total: number): Promise<readonly RabbitMessage[]> {
    const messages = await far.read(queue)
    const first = new Map(messages.toReversed().map((message) => [message.id, message]))
    const arrived = messages.filter((message) => first.get(message.id) === message)
    const numbers = arrived.map(({ value }) => Number(value))
    expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: total }, (_, n) => n))
    for (let aggregate = 0; aggregate < AGGREGATES; aggregate += 1) {
      const ofOne = numbers.filter((n) => n % AGGREGATES === aggregate)
      expect(ofOne).toEqual(ofOne.toSorted((a, b) => a - b))
    }
    return messages
  }

  const noAttempts = async () => {
    expect((await fixture.rows()).filter(({ attempts }) => attempts !== 0)).toEqual([])
  }

  it('starts and saves while it is away, and drains in order when it is back, each event once', async () => {
    await proxy.refuse()
    const outbox = fixture.outbox({ publisher: publisher(), ...QUICK })
    await outbox.start()
    const opened = nextEvent(outbox.events, 'circuit:open')
    await commit(outbox, 0, 40)
    expect((await opened).error?.message).toMatch(/out of reach/)
    await commit(outbox, 40, 60)
    await proxy.accept()
    await allPublished()
    await noAttempts()
    // Nothing was on its way when it was away, so nothing arrives twice.
    expect(await expectInOrder(60)).toHaveLength(60)
  })

  it('loses nothing and keeps the order while its connections are cut again and again', async () => {
    const outbox = fixture.outbox({ publisher: publisher(), ...QUICK })
    await outbox.start()
    let cuts = 0
    outbox.events.on('event:published', () => {
      if ((cuts += 1) % 20 === 0) proxy.cut()
    })
    await commit(outbox, 0, 200)
    await allPublished()
    await noAttempts()
    expect(cuts).toBeGreaterThanOrEqual(200)
    await expectInOrder(200)
  })

  it('goes on after a silence in which connections stay open and nothing answers', async () => {
    const outbox = fixture.outbox({ publisher: publisher(), ...QUICK })
    await outbox.start()
    await commit(outbox, 0, 10)
    await allPublished()
    const opened = nextEvent(outbox.events, 'circuit:open')
    proxy.halfOpen()
    await commit(outbox, 10, 30)
    expect((await opened).error).toMatchObject({ code: 'PUBLISH_TIMEOUT' })
    await proxy.accept()
    await allPublished()
    await noAttempts()
    await expectInOrder(30)
  })

  it('sends an event again whose confirm was lost, under the same id, and what follows it after it', async () => {
    const outbox = fixture.outbox({ publisher: publisher(), ...QUICK })
    await outbox.start()
    await commit(outbox, 0, AGGREGATES)
    await allPublished()
    let lost = 0
    proxy.intercept((chunk) => {
      if (lost > 0 || !chunk.includes('OrderCompleted')) return 'forward'
      lost += 1
      return 'forward-and-cut'
    })
    await outbox.withOutbox(async (_, emit) => {
      const aggregateId = 'order-0'
      emit(
        [AGGREGATES, 2 * AGGREGATES].map((payload) =>
          newEvent({ aggregateId, payload, topic: queue }),
        ),
      )
    })
    await allPublished()
    await noAttempts()
    expect(lost).toBe(1)
    const values = (await far.read(queue)).slice(AGGREGATES).map(({ id, value }) => ({ id, value }))
    const [first, again, follower] = values
    expect(values).toHaveLength(3)
    expect(first).toEqual(again)
    expect([first?.value, follower?.value]).toEqual([String(AGGREGATES), String(2 * AGGREGATES)])
  })

  it('makes an event without a queue a dead letter at once, and its neighbours go out', async () => {
    const outbox = fixture.outbox({ publisher: publisher(), ...QUICK })
    await outbox.start()
    const dead = nextEvent(outbox.events, 'event:dead')
    const nowhere = uniqueName('nowhere')
    await outbox.withOutbox(async (_, emit) => {
      emit([
        newEvent({ aggregateId: 'one', topic: queue, payload: 0 }),
        newEvent({ aggregateId: 'one', topic: nowhere, payload: 'lost?' }),
        newEvent({ aggregateId: 'one', topic: queue, payload: 1 }),
      ])
    })
    expect((await dead).error.message).toMatch(/found no queue/)
    await waitUntil(async () => (await fixture.rows())[2]?.status === 'published', {
      message: 'the neighbour went out',
    })
    expect(await fixture.rows()).toMatchObject([
      { status: 'published' },
      { status: 'dead_letter', last_error: expect.stringContaining(nowhere) },
      { status: 'published' },
    ])
    expect((await far.read(queue)).map(({ value }) => value)).toEqual(['0', '1'])
  })

  it('waits for an exchange that is not there, delivers to the others, and recovers when it is declared', async () => {
    const exchange = uniqueName('later')
    const routed = rabbitmqPublisher({
      url,
      route: ({ topic }) => (topic === 'later' ? { exchange } : {}),
    })
    const outbox = fixture.outbox({ publisher: routed, ...QUICK })
    await outbox.start()
    const opened = nextEvent(outbox.events, 'circuit:open')
    await outbox.withOutbox(async (_, emit) => {
      emit([1, 2, 3].map((payload) => newEvent({ aggregateId: 'one', topic: 'later', payload })))
    })
    expect(await opened).toMatchObject({ topic: 'later' })
    await commit(outbox, 0, 20)
    await waitUntil(
      async () =>
        (await fixture.rows()).filter(({ status }) => status === 'published').length === 20,
      { message: 'the others were delivered' },
    )
    await far.declareExchange(exchange)
    await allPublished()
    await noAttempts()
    expect((await far.read(exchange)).map(({ value }) => value)).toEqual(['1', '2', '3'])
    expect(await expectInOrder(20)).toHaveLength(20)
  })
})
