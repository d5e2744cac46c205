// How far order reaches: the events of an aggregate reach each destination in the order in which they were saved, and
// nothing waits across destinations, on both paths and from two instances, however acks and records come in between.
// The publishers are scripted: no broker can be told when to acknowledge.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  type OutboxEvent,
  type OutboxOptions,
  type Publisher,
  type PublishResult,
  routerPublisher,
} from '../../../src/index.ts'
import { defer } from '../../support/timing/deferred.ts'
import { groupBy } from '../../../src/runtime/group-by.ts'
import { useFixture } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, failedAs, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

type Topic = 'a' | 'b'
const POLLING = { poller: true, pollInterval: '1h' } as const

const event = (topic: Topic, payload: unknown, aggregateId = 'one') =>
  newEvent({ aggregateId, topic, payload })
const payloadOf = ({ payload }: OutboxEvent) => JSON.parse(payload) as unknown

/** Two publishers behind one router; each send ends as the test says. */
function router(answer: (event: OutboxEvent) => PublishResult | Promise<PublishResult>) {
  const publishers = { a: scriptedPublisher(answer), b: scriptedPublisher(answer) }
  const publisher = routerPublisher({ publishers, routes: { a: 'a', b: 'b' } })
  return { publisher, publishers }
}

/** Sends are answered when the test lets them; `begun` has what was sent, in order. */
function heldRouter(held: readonly unknown[]) {
  const begun: unknown[] = []
  const releases = new Map(held.map((payload) => [payload, defer()]))
  const { publisher } = router(async (sent) => {
    const payload = payloadOf(sent)
    begun.push(payload)
    await releases.get(payload)?.promise
    return acked(sent)
  })
  const sent = (payload: unknown) =>
    waitUntil(() => begun.includes(payload), { message: `${String(payload)} was sent` })
  return { publisher, begun, sent, release: (payload: unknown) => releases.get(payload)!.resolve() }
}

const published = (count: number) =>
  waitUntil(
    async () =>
      (await fixture.rows()).filter(({ status }) => status === 'published').length === count,
    { message: `${count} events were published` },
  )

it('sends the events of an aggregate to two publishers side by side: neither waits for the other', async () => {
  const { publisher, begun, sent, release } = heldRouter([1])
  // No fallback: what is sent here was sent at once.
  const outbox = fixture.outbox({ publisher })
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit([event('a', 1), event('b', 2)]))
  await sent(1)
  await outbox.withOutbox(async (_, emit) => emit([event('a', 3), event('b', 4)]))
  await published(2)
  expect(begun.filter((payload) => payload !== 1)).toEqual([2, 4])
  release(1)
  await published(4)
  expect(begun.at(-1)).toBe(3)
})

it('goes on with one publisher while a handler of the same aggregate fails again and again', async () => {
  const sent: unknown[] = []
  const { publisher } = router((one) => {
    if (one.topic === 'a') return failedAs('rejected')
    sent.push(payloadOf(one))
    return acked(one)
  })
  const outbox = fixture.outbox({ publisher, backoffBase: '1h', backoffMax: '1h' })
  await outbox.start()
  const failed = nextEvent(outbox.events, 'event:failed')
  await outbox.withOutbox(async (_, emit) => emit([event('a', 1), event('b', 2)]))
  await failed
  for (const n of [3, 4]) await outbox.withOutbox(async (_, emit) => emit(event('b', n)))
  await published(3)
  expect(sent).toEqual([2, 3, 4])
})

it('makes an aggregate wait for the publisher that is away only with what is for that publisher', async () => {
  let away = true
  const sent: unknown[] = []
  const { publisher } = router((one) => {
    if (one.topic === 'a' && away) return failedAs('transient')
    sent.push(payloadOf(one))
    return acked(one)
  })
  const outbox = fixture.outbox({ publisher, ...POLLING })
  await outbox.start()
  const opened = nextEvent(outbox.events, 'circuit:open')
  await outbox.withOutbox(async (_, emit) => emit([event('a', 'a1'), event('b', 'b1')]))
  expect(await opened).toMatchObject({ publisher: 'a', topic: null })
  for (const n of [2, 3]) {
    await outbox.withOutbox(async (_, emit) => emit([event('b', `b${n}`), event('a', `a${n}`)]))
  }
  await published(3)
  expect(sent).toEqual(['b1', 'b2', 'b3'])
  away = false
  await published(6)
  expect(sent.slice(3)).toEqual(['a1', 'a2', 'a3'])
  expect((await fixture.rows()).every(({ attempts }) => attempts === 0)).toBe(true)
})

/** One publisher with two topics, of which sends to the first are answered when the test lets them. */
function twoTopics(orderScope: 'topic' | 'publisher') {
  const [begun, release] = [[] as unknown[], defer()]
  const scripted = scriptedPublisher(async (one) => {
    begun.push(payloadOf(one))
    if (one.topic === 'a') await release.promise
    return acked(one)
  })
  return { publisher: { ...scripted, orderScope, perLane: true }, begun, release }
}

it('keeps the order within a topic alone where the publisher says so', async () => {
  const { publisher, begun, release } = twoTopics('topic')
  const outbox = fixture.outbox({ publisher })
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit([event('a', 'a1'), event('b', 'b1')]))
  await outbox.withOutbox(async (_, emit) => emit([event('a', 'a2'), event('b', 'b2')]))
  await published(2)
  expect(new Set(begun)).toEqual(new Set(['a1', 'b1', 'b2']))
  release.resolve()
  await published(4)
})

it('keeps the order across the topics of a publisher whose consumers may see them together', async () => {
  const { publisher, begun, release } = twoTopics('publisher')
  const outbox = fixture.outbox({ publisher })
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit([event('a', 1), event('b', 2)]))
  await outbox.withOutbox(async (_, emit) => emit([event('b', 3), event('b', 'other', 'two')]))
  await published(1)
  expect(new Set(begun)).toEqual(new Set([1, 2, 'other']))
  release.resolve()
  await published(4)
  expect(begun.at(-1)).toBe(3)
})

// One after another, as units that lock their aggregate are. What is acknowledged and when, which records have to
// wait, and which of two instances saves, is left to chance.
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      emit: fc.array(fc.constantFrom<Topic>('a', 'b'), { minLength: 1, maxLength: 3 }),
      instance: fc.nat(1),
      aggregate: fc.nat(1),
    }),
  },
  { weight: 4, arbitrary: fc.record({ acks: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 2, arbitrary: fc.constantFrom('hold records' as const, 'let records go' as const) },
)

it.each([
  [
    'at each of two publishers',
    inTurnBehindRouter,
    (one: Sequenced) => `${one.aggregateId}/${one.topic}`,
  ],
  ['across the topics of one', inTurnAcrossTopics, (one: Sequenced) => one.aggregateId],
])(
  'keeps the order %s whatever comes when, from two instances',
  async (_, publisherOf, keyOf) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
        await fixture.sql`truncate outbox`
        const world = openWorld(publisherOf, keyOf)
        await Promise.all(world.outboxes.map((outbox) => outbox.start()))
        for (const one of steps) {
          if (one === 'hold records') await world.holdRecords()
          else if (one === 'let records go') await world.letRecordsGo()
          else if ('acks' in one) await world.acknowledge(one.acks)
          else await world.emit(one.instance, `aggregate-${one.aggregate}`, one.emit)
        }
        await world.letRecordsGo()
        world.acknowledgeAll()
        await published(world.emitted())
        await Promise.all(world.outboxes.map((outbox) => outbox.stop()))
        expect(world.mistakes).toEqual([])
        expect(world.sent()).toBe(world.emitted())
      }),
      { seed: 4, numRuns: 40 },
    )
  },
  120_000,
)

type Sequenced = { readonly aggregateId: string; readonly topic: string }
type Answer = (event: OutboxEvent) => Promise<PublishResult>

/** `keyOf`: what events are numbered by, as their consumers see them. */
function openWorld(
  publisherOf: (answer: Answer) => OutboxOptions['publisher'],
  keyOf: (event: Sequenced) => string,
) {
  const waiting: (() => void)[] = []
  const emitted = new Map<string, number>()
  const ackedUpTo = new Map<string, number>()
  const mistakes: string[] = []
  let free = false
  let sent = 0
  let locks: { release: () => void; over: Promise<unknown> } | null = null

  const answer = async (one: OutboxEvent) => {
    const key = keyOf(one)
    const number = payloadOf(one) as number
    const before = ackedUpTo.get(key) ?? 0
    sent += 1
    if (number !== before + 1) mistakes.push(`${key}: ${number} after ${before}`)
    if (!free) {
      const release = defer()
      waiting.push(() => release.resolve())
      await release.promise
    }
    ackedUpTo.set(key, number)
    return acked(one)
  }
  const outboxes = [1, 2].map(() =>
    fixture.outbox({ publisher: publisherOf(answer), poller: true, pollInterval: '20ms' }),
  )

  return {
    outboxes,
    mistakes,
    sent: () => sent,
    emitted: () => [...emitted.values()].reduce((sum, count) => sum + count, 0),
    async emit(instance: number, aggregateId: string, topics: readonly Topic[]) {
      await outboxes[instance]!.withOutbox(async (_, emit) => {
        for (const topic of topics) {
          const key = keyOf({ aggregateId, topic })
          const number = (emitted.get(key) ?? 0) + 1
          emitted.set(key, number)
          emit(event(topic, number, aggregateId))
        }
      })
    },
    /** What is there to be acknowledged by now, in the order in which it was sent. */
    async acknowledge(count: number) {
      for (const release of waiting.splice(0, count)) release()
      await fixture.sql`select 1`
    },
    acknowledgeAll() {
      free = true
      for (const release of waiting.splice(0)) release()
    },
    async holdRecords() {
      if (locks) return
      const [locked, done] = [defer(), defer()]
      const over = withRowsLocked(async () => {
        locked.resolve()
        await done.promise
      })
      await locked.promise
      locks = { release: () => done.resolve(), over }
    },
    async letRecordsGo() {
      locks?.release()
      await locks?.over
      locks = null
    },
  }
}

/** A publisher that sends the events of a lane one after another, as the contract wants it. */
function inTurn(name: string, answer: Answer): Publisher {
  return {
    name,
    async publish(events) {
      const lanes = [...groupBy(events, ({ lane }) => lane).values()]
      const results = new Map<OutboxEvent, PublishResult>()
      const sendLane = async (lane: readonly OutboxEvent[]) => {
        for (const one of lane) results.set(one, await answer(one))
      }
      await Promise.all(lanes.map(sendLane))
      return events.map((one) => results.get(one)!)
    },
  }
}

function inTurnAcrossTopics(answer: Answer) {
  return inTurn('one', answer)
}

function inTurnBehindRouter(answer: Answer) {
  const only = (topic: Topic) =>
    inTurn(topic, (one) => {
      if (one.topic !== topic) throw new Error(`${topic} got what is for ${one.topic}`)
      return answer(one)
    })
  return routerPublisher({
    publishers: { a: only('a'), b: only('b') },
    routes: { a: 'a', b: 'b' },
  })
}

/** While it runs, nothing can be recorded about the rows that are there now; new ones may come. */
async function withRowsLocked(work: () => Promise<void>): Promise<void> {
  await fixture.sql.begin(async (tx) => {
    await tx`select 1 from outbox for update skip locked`
    await work()
  })
}
