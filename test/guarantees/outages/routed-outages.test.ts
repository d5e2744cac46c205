// Kafka and RabbitMQ behind one outbox, and one of them away, frozen or silent: the other's events go out at once all
// the while, on both paths and from two instances. Nothing is lost, doubled or overtaken, nobody pays with attempts,
// and only the circuit of the one in trouble opens.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Circuit, type Outbox, routerPublisher } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { rabbitmqPublisher } from '../../../src/publishers/rabbitmq/rabbitmq-publisher.ts'
import {
  describeWithKafka,
  describeWithOwnKafka,
  describeWithRabbit,
  kafkaBrokers,
  rabbitUrl,
  useFixture,
} from '../../support/fixture.ts'
import { oneKafkaClient } from '../../support/kafka-clients.ts'
import { type KafkaServer, startKafka } from '../../support/servers/kafka-server.ts'
import { openRabbit, proxyRabbit, type Rabbit } from '../../support/servers/rabbitmq.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import type { TcpProxy } from '../../support/servers/tcp-proxy.ts'
import { createTopic, readTopic } from '../../support/servers/topic-reader.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

/** Long enough for a slow machine to keep its leases. */
const TIMES = {
  threshold: '4s',
  publishTimeout: '2s',
  pollInterval: '100ms',
  poller: true,
} as const
const AGGREGATES = 3

/** What both describes need: a topic, a queue, outboxes that know both, and a look at what arrived. */
function useBothBrokers(brokers: () => string[], url: () => string) {
  let far: Rabbit
  let topic: string
  let queue: string
  beforeEach(async () => {
    far = await openRabbit(rabbitUrl())
    queue = await far.declareQueue()
    topic = uniqueName('orders')
    await createTopic(brokers(), topic)
  })
  afterEach(async () => {
    await far.close()
  })

  /** With a reader of its own each time: one that is open while its broker dies may take long to come back. */
  async function readKafka(): Promise<number[]> {
    const reader = await readTopic(brokers(), topic)
    const messages = await reader.readToEnd()
    await reader.stop()
    return messages.map(({ value }) => Number(value))
  }

  const numbers = (total: number) => Array.from({ length: total }, (_, n) => n)

  return {
    open(options: object = {}) {
      const kafka = oneKafkaClient.publisher(brokers())
      const rabbit = rabbitmqPublisher({
        url: url(),
        connectTimeout: '1500ms',
        confirmTimeout: '2500ms',
      })
      const publisher = routerPublisher({
        publishers: { kafka, rabbit },
        routes: { [topic]: 'kafka', [queue]: 'rabbit' },
      })
      const outbox = fixture.outbox({ publisher, ...TIMES, ...options })
      const circuits: Circuit[] = []
      outbox.events.on('circuit:open', (circuit) => void circuits.push(circuit))
      return { outbox, circuits }
    },
    /** Units of work with an event for each. */
    async commit(outbox: Outbox, from: number, to: number) {
      for (let n = from; n < to; n += 1) {
        await outbox.withOutbox(async (_, emit) => {
          const aggregateId = `${n % AGGREGATES}`
          emit([
            newEvent({ aggregateType: 'order', aggregateId, payload: n, topic }),
            newEvent({ aggregateType: 'invoice', aggregateId, payload: n, topic: queue }),
          ])
        })
      }
    },
    /** Units of work with an event for the one or the other, all of the same few aggregates. */
    async commitInTurn(outboxes: readonly Outbox[], total: number) {
      for (let n = 0; n < total; n += 1) {
        // Neither follows the other: each aggregate meets all combinations of instance and broker.
        const where = Math.floor(n / 2) % 2 === 0 ? topic : queue
        await outboxes[n % outboxes.length]!.withOutbox(async (_, emit) => {
          emit(newEvent({ aggregateId: `${n % AGGREGATES}`, payload: n, topic: where }))
        })
      }
    },
    /** What arrived, each event by its first arrival, broker by broker and aggregate by aggregate. */
    async arrivals() {
      const kafka = await readKafka()
      const rabbit = (await far.read(queue)).map(({ value }) => Number(value))
      return [kafka, rabbit].flatMap((arrived) => {
        const first = [...new Set(arrived)]
        return numbers(AGGREGATES).map((aggregate) =>
          first.filter((n) => n % AGGREGATES === aggregate),
        )
      })
    },
    async pendingOf(broker: 'kafka' | 'rabbit') {
      const where = broker === 'kafka' ? topic : queue
      const rows = await fixture.sql`
        select 1 from outbox where status = 'pending' and topic = ${where}`
      return rows.length
    },
    /** Each event once, in the order of its aggregate; `mayRepeat` where acks were lost. */
    async expectArrived(total: number, mayRepeat: 'kafka' | 'rabbit') {
      const kafka = await readKafka()
      const rabbit = (await far.read(queue)).map(({ value }) => Number(value))
      for (const [broker, arrived] of Object.entries({ kafka, rabbit })) {
        const values = broker === mayRepeat ? [...new Set(arrived)] : arrived
        expect(values.toSorted((a, b) => a - b)).toEqual(numbers(total))
        for (let aggregate = 0; aggregate < AGGREGATES; aggregate += 1) {
          const ofOne = values.filter((n) => n % AGGREGATES === aggregate)
          expect(ofOne).toEqual(ofOne.toSorted((a, b) => a - b))
        }
      }
      expect((await fixture.rows()).filter(({ attempts }) => attempts !== 0)).toEqual([])
    },
    async allPublished() {
      await waitUntil(
        async () => (await fixture.rows()).every(({ status }) => status === 'published'),
        { message: 'everything was published', timeoutMs: 50_000 },
      )
    },
  }
}

type Both = ReturnType<typeof useBothBrokers>

/** How the other one fared. */
const UNHARMED = { paths: ['immediate'], circuits: [] }

/** The trouble of one, from its begin to its end, and how the other fared meanwhile. */
async function goThrough(
  both: Both,
  inTrouble: 'kafka' | 'rabbit',
  trouble: { begin: () => unknown; end: () => unknown },
) {
  const well = inTrouble === 'kafka' ? 'rabbit' : 'kafka'
  const { outbox, circuits } = both.open()
  const paths: string[] = []
  await outbox.start()
  await both.commit(outbox, 0, 6)
  await both.allPublished()

  const opened = nextEvent(outbox.events, 'circuit:open', undefined, 60_000)
  await trouble.begin()
  await both.commit(outbox, 6, 12)
  expect(await opened).toMatchObject({ publisher: inTrouble })

  // In the middle of it: at once on the immediate path, although each unit of work has an event for both.
  outbox.events.on('event:published', ({ event, path }) => {
    if (event.aggregateType === (well === 'kafka' ? 'order' : 'invoice')) paths.push(path)
  })
  await both.commit(outbox, 12, 24)
  await waitUntil(() => paths.length >= 12, { message: 'the other goes on' })
  const pathsOfTheOther = [...new Set(paths)]

  // And on the fallback, of an instance that sends nothing else and has to find out for itself.
  const { outbox: fallback, circuits: others } = both.open({ immediate: false })
  await fallback.start()
  await both.commit(fallback, 24, 36)
  await waitUntil(async () => (await both.pendingOf(well)) === 0, {
    message: 'the fallback of another instance goes on',
  })
  expect(await both.pendingOf(inTrouble)).toBeGreaterThanOrEqual(24)

  await trouble.end()
  await both.allPublished()
  await both.expectArrived(36, inTrouble)
  const ofTheOther = [...circuits, ...others].filter(({ publisher }) => publisher === well)
  return { paths: pathsOfTheOther, circuits: ofTheOther }
}

describeWithRabbit('RabbitMQ in trouble beside Kafka', () => {
  describeWithKafka('that is well', () => {
    let proxy: TcpProxy
    let url: string
    beforeEach(async () => {
      const proxied = await proxyRabbit(rabbitUrl())
      proxy = proxied.proxy
      url = proxied.url
    })
    afterEach(() => proxy.stop())
    const both = useBothBrokers(kafkaBrokers, () => url)

    it('does not hold up Kafka when it refuses connections', async () => {
      const trouble = { begin: () => proxy.refuse(), end: () => proxy.accept() }
      expect(await goThrough(both, 'rabbit', trouble)).toEqual(UNHARMED)
    })

    it('does not hold up Kafka when it is silent', async () => {
      const trouble = { begin: () => proxy.halfOpen(), end: () => proxy.accept() }
      expect(await goThrough(both, 'rabbit', trouble)).toEqual(UNHARMED)
    })

    it('keeps the order of aggregates that go to both, at each of them, from two instances, while it is cut off', async () => {
      const [one, two] = [both.open(), both.open()]
      await Promise.all([one.outbox.start(), two.outbox.start()])
      let published = 0
      one.outbox.events.on('event:published', () => {
        if ((published += 1) % 10 === 0) proxy.cut()
      })
      await both.commitInTurn([one.outbox, two.outbox], 60)
      await both.allPublished()
      const arrivals = await both.arrivals()
      expect(arrivals.flat()).toHaveLength(60)
      for (const ofOne of arrivals) expect(ofOne).toEqual(ofOne.toSorted((a, b) => a - b))
      expect((await fixture.rows()).filter(({ attempts }) => attempts !== 0)).toEqual([])
      expect(published).toBeGreaterThan(0)
    })

    it('has what it missed delivered by another instance when the first is gone', async () => {
      const { outbox } = both.open()
      await outbox.start()
      await proxy.refuse()
      await both.commit(outbox, 0, 6)
      await waitUntil(async () => (await both.pendingOf('kafka')) === 0, {
        message: 'Kafka has its part',
      })
      await outbox.stop()
      await proxy.accept()
      const { outbox: next } = both.open()
      await next.start()
      await both.allPublished()
      await both.expectArrived(6, 'rabbit')
      expect(await both.pendingOf('rabbit')).toBe(0)
    })
  })
})

describeWithRabbit('Kafka in trouble beside RabbitMQ', () => {
  describeWithOwnKafka('that is well', () => {
    let kafka: KafkaServer
    beforeAll(async () => {
      kafka = await startKafka()
    })
    afterAll(async () => {
      kafka.resume()
      await kafka.stop()
    })
    const both = useBothBrokers(() => kafka.brokers, rabbitUrl)

    it('does not hold up RabbitMQ when it is frozen', async () => {
      const trouble = { begin: () => kafka.pause(), end: () => kafka.resume() }
      expect(await goThrough(both, 'kafka', trouble)).toEqual(UNHARMED)
    })

    it('does not hold up RabbitMQ when it is killed', async () => {
      const trouble = { begin: () => kafka.kill(), end: () => kafka.start() }
      expect(await goThrough(both, 'kafka', trouble)).toEqual(UNHARMED)
    })
  })
})

describe('handlers beside Kafka', () => {
  describeWithKafka('in one router', () => {
    it('sends each event where it belongs, and retries the one while the other goes on', async () => {
      const topic = uniqueName('orders')
      await createTopic(kafkaBrokers(), topic)
      let broken = true
      const mailed: unknown[] = []
      const handlers = handlersPublisher({
        handlers: {
          MailWanted: ({ payload }) => {
            if (broken) throw new Error('no mail today')
            mailed.push(payload)
          },
        },
      })
      const publisher = routerPublisher({
        publishers: { kafka: oneKafkaClient.publisher(kafkaBrokers()), handlers },
        routes: { mail: 'handlers' },
        otherwise: 'kafka',
      })
      const table = { byType: { MailWanted: 'mail' }, byAggregate: { order: topic } }
      const outbox = fixture.outbox({ publisher, topic: table, backoffBase: 0, ...TIMES })
      await outbox.start()
      const failed = nextEvent(outbox.events, 'event:failed')
      for (let n = 0; n < 10; n += 1) {
        await outbox.withOutbox(async (_, emit) => {
          emit([
            newEvent({ aggregateId: `order-${n}`, payload: n }),
            newEvent({ aggregateId: `mail-${n}`, type: 'MailWanted', payload: n }),
          ])
        })
      }
      await failed
      const reader = await readTopic(kafkaBrokers(), topic)
      const values = (await reader.waitForCount(10)).map(({ value }) => Number(value))
      broken = false
      await waitUntil(
        async () => (await fixture.rows()).every(({ status }) => status === 'published'),
        { message: 'all mails went out' },
      )
      expect((await reader.readToEnd()).length).toBe(10)
      await reader.stop()
      const all = Array.from({ length: 10 }, (_, n) => n)
      expect(values.toSorted((a, b) => a - b)).toEqual(all)
      expect((mailed as number[]).toSorted((a, b) => a - b)).toEqual(all)
    })
  })
})
