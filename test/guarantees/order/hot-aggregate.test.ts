// One aggregate with many events: it keeps its order, and nobody else has to wait for it.
import { sql as raw } from 'drizzle-orm'
import { expect, it } from 'vitest'
import type { PublishResult } from '../../../src/index.ts'
import type { HandledEvent } from '../../../src/publishers/handlers.ts'
import { defer } from '../../support/timing/deferred.ts'
import { useFixture } from '../../support/fixture.ts'
import { closeGate } from '../../support/timing/gate.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, failedAs, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

it.each([
  ['in small batches', { batchSize: 100 }],
  ['in large batches', { batchSize: 3_000 }],
  ['with dead letters that hold', { onDeadLetter: 'hold' }],
] as const)(
  'drains a deep backlog of one aggregate and what lies behind it, %s',
  async (__, settings) => {
    await fixture.sql`
    insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers,
      max_attempts, available_at, occurred_at)
    select gen_random_uuid(), case when n <= 3000 then 0 else n end, 'order',
      case when n <= 3000 then 'hot' else 'cold ' || n end,
      'OrderCompleted', 'orders', to_json(n), '{}', 10, now(), now()
    from generate_series(1, 3100) n order by n`
    await fixture.sql`analyze outbox`
    // In the order of their first arrivals: on a machine that stands still a lease may end, and an event come again.
    const handled = new Map<string, HandledEvent>()
    const outbox = fixture.handling(
      { OrderCompleted: (event) => void handled.set(event.id, event) },
      // A claim whose cost grows with the square of the backlog outlasts this lease and gets nowhere.
      { ...settings, poller: true, threshold: '2s', publishTimeout: '1s', pollInterval: '10ms' },
    )
    await outbox.start()
    await waitUntil(() => handled.size === 3_100, {
      message: () => `all were handled, not ${handled.size}`,
      timeoutMs: 50_000,
    })
    const hot = [...handled.values()]
      .filter(({ aggregateId }) => aggregateId === 'hot')
      .map(({ payload }) => payload)
    expect(hot).toEqual(Array.from({ length: 3_000 }, (_, n) => n + 1))
  },
)

it('does not let slow handlers of some aggregates hold up the others', async () => {
  const release = defer()
  const fast = defer()
  const outbox = fixture.handling({ Slow: () => release.promise, Fast: () => fast.resolve() })
  await outbox.start()
  for (let n = 0; n < 10; n += 1) {
    await outbox.withOutbox(async (_, emit) => emit(newEvent({ type: 'Slow' })))
  }
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ type: 'Fast' })))
  await fast.promise
  expect((await fixture.rows()).filter(({ event_type }) => event_type === 'Slow')).toMatchObject(
    Array.from({ length: 10 }, () => ({ status: 'pending' })),
  )
  release.resolve()
})

it('keeps the fast path open behind a dead letter', async () => {
  const outbox = fixture.handling({ Good: () => {} }, { maxAttempts: 1 })
  await outbox.start()
  const dead = nextEvent(outbox.events, 'event:dead')
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ type: 'Bad', aggregateId: 'one' })))
  await dead
  const published = nextEvent(outbox.events, 'event:published')
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ type: 'Good', aggregateId: 'one' })))
  expect(await published).toMatchObject({ path: 'immediate' })
})

it('sends what was queued behind an event that dies without a detour', async () => {
  const [sending, answer] = [defer(), defer<PublishResult>()]
  const publisher = scriptedPublisher((event) => {
    if (event.payload !== '"dies"') return acked(event)
    sending.resolve()
    return answer.promise
  })
  const outbox = fixture.outbox({ publisher })
  await outbox.start()
  const event = (payload: string) => newEvent({ aggregateId: 'one', payload })
  await outbox.withOutbox(async (_, emit) => emit(event('dies')))
  await sending.promise
  await outbox.withOutbox(async (_, emit) => emit(event('follows')))
  const published = nextEvent(outbox.events, 'event:published')
  answer.resolve(failedAs('permanent'))
  expect(await published).toMatchObject({ path: 'immediate' })
})

it('does not overtake an earlier event of another instance that hides behind a later one of ours', async () => {
  const gate = await closeGate(fixture.sql)
  const log: unknown[] = []
  const [holdA, holdB] = [defer(), defer()]
  const handler =
    (hold: Promise<void>) =>
    async ({ payload }: HandledEvent) => {
      await hold
      log.push(payload)
    }
  const a = fixture.handling({ OrderCompleted: handler(holdA.promise) }, { threshold: '1h' })
  const b = fixture.handling({ OrderCompleted: handler(holdB.promise) }, { threshold: '1h' })
  await Promise.all([a.start(), b.start()])
  const event = (payload: string) => newEvent({ aggregateId: 'one', payload })

  const first = b.withOutbox(async (tx, emit) => {
    await tx.execute(raw`insert into gate values (1)`)
    emit(event('B1'))
  })
  // B1 has its place in the order by now.
  await gate.waiting(1)
  await a.withOutbox(async (_, emit) => emit(event('A2')))
  await Promise.all([gate.open(), first])
  await a.withOutbox(async (_, emit) => emit(event('A3')))

  // B1 was committed before A3 was begun, so A3 may not leave before it.
  holdA.resolve()
  await a.stop()
  expect(log).toEqual(['A2'])
  holdB.resolve()
  await b.stop()
  expect(log).toEqual(['A2', 'B1'])
  expect(await a.pollOnce()).toBe(1)
  expect(log).toEqual(['A2', 'B1', 'A3'])
})

it('claims with a token of its own each time', async () => {
  const saver = fixture.handling({})
  await saver.withOutbox(async (_, emit) => emit([newEvent(), newEvent()]))
  const outbox = fixture.handling({ OrderCompleted: () => never.promise }, { batchSize: 1 })
  const never = defer()
  const polls = [outbox.pollOnce(), outbox.pollOnce()]
  await waitUntil(
    async () => {
      const [tokens] = await fixture.sql`
        select count(distinct lease_token)::int from outbox where lease_token is not null`
      return tokens?.['count'] === 2
    },
    { message: 'two claims have two tokens' },
  )
  never.resolve()
  expect(await Promise.all(polls)).toEqual([1, 1])
})
