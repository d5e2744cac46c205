// An aggregate whose events go to two publishers: they leave in the order in which they were saved, across both, on
// both paths and from two instances, however acks and records come in between. The publishers are scripted: no
// broker can be told when to acknowledge.
import { sql as raw } from 'drizzle-orm'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type OutboxEvent, type PublishResult, routerPublisher } from '../../src/index.ts'
import { defer } from '../support/deferred.ts'
import { groupBy } from '../../src/group-by.ts'
import { useFixture } from '../support/fixture.ts'
import { closeGate } from '../support/gate.ts'
import { newEvent } from '../support/sample-events.ts'
import { acked, failedAs, scriptedPublisher } from '../support/scripted-publisher.ts'
import { nextEvent, waitUntil } from '../support/wait-until.ts'

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

it('sends the events of one unit of work one after another, and those of others beside them', async () => {
  const { publisher, begun, sent, release } = heldRouter([1])
  const outbox = fixture.outbox({ publisher, ...POLLING })
  await outbox.start()
  const paths = new Map<string, string>()
  outbox.events.on('event:published', ({ event: { id }, path }) => paths.set(id, path))
  const ids = await outbox.withOutbox(async (_, emit) =>
    emit([event('a', 1), event('b', 2), event('a', 3), event('b', 'other', 'two'), event('b', 4)]),
  )
  await sent('other')
  await sent(1)
  // What was left to the fallback is free, so that it waits for nothing but the order.
  await waitUntil(
    async () => (await fixture.rows()).filter(({ available }) => available).length === 3,
    {
      message: 'the rest was given back',
    },
  )
  expect(new Set(begun)).toEqual(new Set([1, 'other']))
  release(1)
  await published(5)
  expect(begun.filter((payload) => payload !== 'other')).toEqual([1, 2, 3, 4])
  const path = ids.map((id) => paths.get(id))
  expect(path).toEqual(['immediate', 'fallback', 'fallback', 'immediate', 'fallback'])
})

it('sends an event at once when all before it in its aggregate is out, wherever that went', async () => {
  const { publisher, publishers } = router(acked)
  // No fallback: what is sent here was sent at once.
  const outbox = fixture.outbox({ publisher })
  await outbox.start()
  for (const [n, topic] of (['a', 'b', 'a', 'b'] as const).entries()) {
    await outbox.withOutbox(async (_, emit) => emit(event(topic, n)))
    await published(n + 1)
  }
  expect(publishers.a.batches).toEqual([[0], [2]])
  expect(publishers.b.batches).toEqual([[1], [3]])
})

it('keeps an event back while one before it is acknowledged elsewhere and not yet recorded', async () => {
  const { publisher, begun, sent, release } = heldRouter([1])
  const outbox = fixture.outbox({ publisher, ...POLLING })
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit(event('a', 1)))
  await sent(1)
  await withRowsLocked(async () => {
    release(1)
    await waitUntil(
      async () => {
        const waiting = await fixture.sql`
          select 1 from pg_stat_activity where datname = current_database()
            and wait_event_type = 'Lock' and query like '%record what was published%'`
        return waiting.length === 1
      },
      { message: 'the record of the first waits' },
    )
    await outbox.withOutbox(async (_, emit) => emit([event('b', 2), event('b', 'other', 'two')]))
    await sent('other')
    expect(begun).toEqual([1, 'other'])
  })
  await published(3)
  expect(begun).toEqual([1, 'other', 2])
})

it('lets nothing pass an event for another publisher that commits after one saved later', async () => {
  const gate = await closeGate(fixture.sql)
  const { publisher, begun, sent, release } = heldRouter([1, 2])
  const outbox = fixture.outbox({ publisher, ...POLLING })
  await outbox.start()
  // Saved first, and not yet committed.
  const first = outbox.withOutbox(async (tx, emit) => {
    await tx.execute(raw`insert into gate values (1)`)
    emit(event('b', 1))
  })
  await gate.waiting(1)
  await outbox.withOutbox(async (_, emit) => emit(event('a', 2)))
  await sent(2)
  await gate.open()
  await first
  await sent(1)
  // It follows both, and its own lane knows of one alone.
  await outbox.withOutbox(async (_, emit) => emit([event('a', 3), event('a', 'other', 'two')]))
  release(2)
  await published(2)
  expect(begun).toEqual([2, 1, 'other'])
  release(1)
  await published(4)
  expect(begun).toEqual([2, 1, 'other', 3])
})

it('makes an aggregate wait for the publisher that is away, and no other', async () => {
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
  await outbox.withOutbox(async (_, emit) => emit([event('a', 1), event('b', 2)]))
  expect(await opened).toMatchObject({ publisher: 'a', topic: null })
  for (const n of [1, 2, 3]) {
    await outbox.withOutbox(async (_, emit) => {
      emit([
        event('b', `${n} of two`, 'two'),
        event('a', `${n} of three`, 'three'),
        event('b', n + 2),
      ])
    })
  }
  await published(3)
  expect(sent).toEqual(['1 of two', '2 of two', '3 of two'])
  away = false
  await published(11)
  expect(sent.filter((payload) => typeof payload === 'number')).toEqual([1, 2, 3, 4, 5])
  expect((await fixture.rows()).every(({ attempts }) => attempts === 0)).toBe(true)
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

it('keeps the order whatever comes when, from two instances', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
      await fixture.sql`truncate outbox`
      const world = openWorld()
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
}, 120_000)

function openWorld() {
  const waiting: (() => void)[] = []
  const emitted = new Map<string, number>()
  const ackedUpTo = new Map<string, number>()
  const mistakes: string[] = []
  let free = false
  let sent = 0
  let locks: { release: () => void; over: Promise<unknown> } | null = null

  const answer = async (one: OutboxEvent, name: string) => {
    const { aggregateId } = one
    const number = payloadOf(one) as number
    const before = ackedUpTo.get(aggregateId) ?? 0
    sent += 1
    if (name !== one.topic) mistakes.push(`${name} got what is for ${one.topic}`)
    if (number !== before + 1) mistakes.push(`${aggregateId}: ${number} after ${before}`)
    if (!free) {
      const release = defer()
      waiting.push(() => release.resolve())
      await release.promise
    }
    ackedUpTo.set(aggregateId, number)
    return acked(one)
  }
  const outboxes = [1, 2].map(() =>
    fixture.outbox({ publisher: inTurn(answer), poller: true, pollInterval: '20ms' }),
  )

  return {
    outboxes,
    mistakes,
    sent: () => sent,
    emitted: () => [...emitted.values()].reduce((sum, count) => sum + count, 0),
    async emit(instance: number, aggregateId: string, topics: readonly Topic[]) {
      await outboxes[instance]!.withOutbox(async (_, emit) => {
        for (const topic of topics) {
          const number = (emitted.get(aggregateId) ?? 0) + 1
          emitted.set(aggregateId, number)
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

/** Publishers that send the events of an aggregate one after another, as the contract wants it. */
function inTurn(answer: (event: OutboxEvent, name: string) => Promise<PublishResult>) {
  const publisher = (name: string) => ({
    name,
    async publish(events: readonly OutboxEvent[]) {
      const lanes = [...groupBy(events, ({ aggregateId }) => aggregateId).values()]
      const results = new Map<OutboxEvent, PublishResult>()
      const sendLane = async (lane: readonly OutboxEvent[]) => {
        for (const one of lane) results.set(one, await answer(one, name))
      }
      await Promise.all(lanes.map(sendLane))
      return events.map((one) => results.get(one)!)
    },
  })
  return routerPublisher({
    publishers: { a: publisher('a'), b: publisher('b') },
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
