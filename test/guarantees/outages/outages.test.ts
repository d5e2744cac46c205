// An outage costs no attempts: while a destination is away, one probe at a time
// finds out whether it is back, and nothing overtakes what could not be sent.
import { afterEach, expect, it, vi } from 'vitest'
import type { PublishResult } from '../../../src/index.ts'
import { defer } from '../../support/timing/deferred.ts'
import { useFixture } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, failedAs, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
afterEach(() => {
  vi.useRealTimers()
})

/** Long enough that a lease never ends by itself while a test runs. */
const LONG = { threshold: '5m', publishTimeout: '1m' } as const

const isPublished = ({ status }: { status: string }) => status === 'published'
const allPublished = () =>
  waitUntil(async () => (await fixture.rows()).every(isPublished), {
    message: 'everything was published',
  })

it('costs no attempts, sends one probe at a time, and drains at full speed when it is over', async () => {
  let away = true
  const publisher = scriptedPublisher((event) => (away ? failedAs('transient') : acked(event)))
  const outbox = fixture.outbox({ publisher, ...LONG, poller: true })
  let opened = 0
  outbox.events.on('circuit:open', () => {
    opened += 1
  })
  // The broker is back once a probe has failed, after the five of the first try.
  let failures = 0
  outbox.events.on('event:failed', () => {
    failures += 1
    away = failures < 6
  })
  const sentBeforeProbe = defer<unknown>()
  outbox.events.once('circuit:half-open', () => {
    sentBeforeProbe.resolve([...publisher.batches])
  })
  await outbox.start()
  const [open, failed, closed] = [
    nextEvent(outbox.events, 'circuit:open'),
    nextEvent(outbox.events, 'event:failed'),
    nextEvent(outbox.events, 'circuit:closed'),
  ]
  await outbox.withOutbox(async (_, emit) => {
    emit([0, 1, 2, 3, 4].map((payload) => newEvent({ payload })))
  })
  expect(await open).toMatchObject({ topic: null })
  expect(await failed).toMatchObject({ attempts: 0, retryInMs: 0 })
  expect(await sentBeforeProbe.promise).toEqual([[0, 1, 2, 3, 4]])
  await closed
  await allPublished()
  await outbox.stop()
  expect(publisher.batches.map((batch) => batch.length)).toEqual([5, 1, 1, 4])
  // Once for the outage, once for the probe that failed.
  expect(opened).toBe(2)
  expect((await fixture.rows()).map((row) => row.attempts)).toEqual(Array(5).fill(0))
})

it('keeps an outage of one topic to that topic, and claims no more of it than a probe', async () => {
  let away = true
  const publisher = scriptedPublisher((event) =>
    away && event.topic === 'away' ? failedAs('transient', 'topic') : acked(event),
  )
  const outbox = fixture.outbox({ publisher, ...LONG })
  await outbox.start()
  // The circuit lets a probe pass when the test says so, not half a second later, however long the steps before it take.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const [open, failed, halfOpen] = [
    nextEvent(outbox.events, 'circuit:open'),
    nextEvent(outbox.events, 'event:failed'),
    nextEvent(outbox.events, 'circuit:half-open'),
  ]
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ topic: 'away', payload: 1 })))
  expect(await open).toMatchObject({ topic: 'away' })
  await failed
  const published = nextEvent(outbox.events, 'event:published')
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ topic: 'fine', payload: 'fine' })))
  expect(await published).toMatchObject({ path: 'immediate', topic: 'fine' })
  for (const n of [2, 3]) {
    await outbox.withOutbox(async (_, emit) => emit(newEvent({ topic: 'away', payload: n })))
  }
  expect(await outbox.pollOnce()).toBe(0)

  vi.advanceTimersByTime(500)
  await halfOpen
  away = false
  expect(await outbox.pollOnce()).toBe(1)
  expect(publisher.batches).toEqual([[1], ['fine'], [1]])
  expect(await outbox.pollOnce()).toBe(2)
  expect(publisher.batches.at(-1)).toEqual([2, 3])
  expect((await fixture.rows()).every(isPublished)).toBe(true)
})

it('blames the topic, not the broker, while the same batch shows that the broker answers', async () => {
  const publisher = scriptedPublisher((event) =>
    event.topic === 'away' ? failedAs('transient', 'broker') : acked(event),
  )
  const outbox = fixture.outbox({ publisher, ...LONG })
  await outbox.start()
  const open = nextEvent(outbox.events, 'circuit:open')
  await outbox.withOutbox(async (_, emit) => {
    emit([newEvent({ topic: 'fine' }), newEvent({ topic: 'away' }), newEvent({ topic: 'fine' })])
  })
  expect(await open).toMatchObject({ topic: 'away' })
  await outbox.stop()
  expect((await fixture.rows()).map(({ status }) => status)).toEqual([
    'published',
    'pending',
    'published',
  ])
})

it('lets nothing overtake what waits behind a probe, on the immediate path or later', async () => {
  let away = true
  const publisher = scriptedPublisher((event) =>
    away && event.topic === 'away' ? failedAs('transient', 'topic') : acked(event),
  )
  const outbox = fixture.outbox({ publisher, ...LONG, maxInFlight: 3 })
  await outbox.start()
  const halfOpen = nextEvent(outbox.events, 'circuit:half-open')
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ topic: 'away', payload: 'opens' })))
  await halfOpen
  away = false
  const event = (payload: number, topic: string) => newEvent({ aggregateId: 'one', payload, topic })
  const published = nextEvent(outbox.events, 'event:published')
  await outbox.withOutbox(async (_, emit) => {
    emit([event(1, 'away'), event(2, 'away'), event(3, 'fine')])
  })
  await published
  await outbox.withOutbox(async (_, emit) => emit(event(4, 'fine')))
  const waiting = async () => (await fixture.rows()).filter(({ status }) => status === 'pending')
  await waitUntil(async () => (await waiting()).every(({ available }) => available), {
    message: 'what was turned away was given back',
  })
  await waitUntil(() => outbox.activity()[0]!.inFlight === 0, { message: 'the outbox knows so' })
  // So it takes no room on the immediate path.
  await outbox.withOutbox(async (_, emit) => {
    emit([newEvent({ payload: 'other' }), newEvent({ payload: 'other' })])
  })
  await outbox.stop()
  expect(publisher.batches).toEqual([['opens'], [1], ['other', 'other']])

  await fixture.sql`update outbox set available_at = clock_timestamp()`
  const other = fixture.outbox({ publisher, ...LONG })
  expect(await other.pollOnce()).toBe(4)
  expect(publisher.batches.at(-1)).toEqual(['opens', 2, 3, 4])
})

it('holds nothing back behind a probe with order: none', async () => {
  let away = true
  const publisher = scriptedPublisher((event) =>
    away && event.topic === 'away' ? failedAs('transient', 'topic') : acked(event),
  )
  const outbox = fixture.outbox({ publisher, ...LONG, order: 'none' })
  await outbox.start()
  const halfOpen = nextEvent(outbox.events, 'circuit:half-open')
  const event = (payload: number, topic: string) => newEvent({ aggregateId: 'one', payload, topic })
  await outbox.withOutbox(async (_, emit) => emit(event(0, 'away')))
  await halfOpen
  away = false
  await outbox.withOutbox(async (_, emit) => {
    emit([event(1, 'away'), event(2, 'away'), event(3, 'fine')])
  })
  await outbox.stop()
  expect(publisher.batches).toEqual([[0], [1, 3]])
})

it('takes a refusal for a sign of life, and its event for dead at once', async () => {
  const answers = [failedAs('transient'), failedAs('permanent')]
  const publisher = scriptedPublisher((event) => answers.shift() ?? acked(event))
  const outbox = fixture.outbox({ publisher, ...LONG, poller: true })
  await outbox.start()
  const closed = nextEvent(outbox.events, 'circuit:closed')
  const dead = nextEvent(outbox.events, 'event:dead')
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await closed
  expect(await dead).toMatchObject({ attempts: 1, error: { message: 'the test says permanent' } })
  expect(await fixture.rows()).toMatchObject([{ status: 'dead_letter', attempts: 1 }])
})

it('sends another probe after one that came back untried', async () => {
  const answers = [failedAs('transient'), failedAs('held')]
  const publisher = scriptedPublisher((event) => answers.shift() ?? acked(event))
  const outbox = fixture.outbox({ publisher, ...LONG, poller: true })
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await allPublished()
  expect(publisher.batches).toHaveLength(3)
})

it('sends another probe to a topic whose probe was never answered', async () => {
  const answers = [failedAs('transient', 'topic'), new Promise<PublishResult>(() => {})]
  const publisher = scriptedPublisher((event) => answers.shift() ?? acked(event))
  const outbox = fixture.outbox({
    publisher,
    threshold: '3s',
    publishTimeout: '50ms',
    poller: true,
    pollInterval: '50ms',
  })
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ topic: 'away' })))
  await allPublished()
  expect(publisher.batches).toHaveLength(3)
})

it.each([
  ['throws', async () => Promise.reject(new Error('lost my head')), /lost my head/],
  ['answers for fewer events than it was given', async () => [], /returned 0 results for 1 events/],
])('treats a publisher that %s as an outage', async (_, publish, message) => {
  const outbox = fixture.outbox({ publisher: { name: 'odd', publish }, ...LONG })
  await outbox.start()
  const [open, failed] = [
    nextEvent(outbox.events, 'circuit:open'),
    nextEvent(outbox.events, 'event:failed'),
  ]
  await outbox.withOutbox(async (__, emit) => emit(newEvent()))
  expect((await open).error?.message).toMatch(message)
  await failed
  expect(await fixture.rows()).toMatchObject([
    { status: 'pending', attempts: 0, available: true, last_error: message as never },
  ])
})

it('records nothing for a send that is not answered in time, keeps its rows, and takes a late ack', async () => {
  const answer = defer<PublishResult>()
  const publisher = scriptedPublisher(
    (event) => (event.aggregateId === 'one' ? answer.promise : acked(event)),
    { timeoutMs: 20, settlesWithinMs: 60_000 },
  )
  const outbox = fixture.outbox({ publisher, ...LONG, maxInFlight: 2 })
  const event = (payload: number) => newEvent({ aggregateId: 'one', payload })
  await outbox.start()
  const [open, halfOpen] = [
    nextEvent(outbox.events, 'circuit:open'),
    nextEvent(outbox.events, 'circuit:half-open'),
  ]
  await outbox.withOutbox(async (_, emit) => emit(event(1)))
  expect((await open).error).toMatchObject({ code: 'PUBLISH_TIMEOUT' })
  expect(await fixture.rows()).toMatchObject([
    { status: 'pending', attempts: 0, last_error: null, available: false },
  ])

  // Another aggregate shows that the destination is well; the first still may not be overtaken.
  await halfOpen
  const well = nextEvent(outbox.events, 'event:published')
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ payload: 'other' })))
  await well
  await outbox.withOutbox(async (_, emit) => emit(event(2)))
  await waitUntil(async () => (await fixture.rows())[2]?.available, {
    message: 'what may not overtake it was given back',
  })
  // It is still in this process's hands: with these two there would be three.
  await outbox.withOutbox(async (_, emit) => {
    emit([newEvent({ payload: 'left' }), newEvent({ payload: 'left' })])
  })
  expect((await fixture.rows()).map((row) => row.available)).toEqual([
    false,
    expect.any(Boolean),
    true,
    true,
    true,
  ])

  const published = nextEvent(outbox.events, 'event:published')
  answer.resolve({ ok: true, topic: 'order', key: 'one', partition: null, offset: '17' })
  expect(await published).toMatchObject({ path: 'immediate', offset: '17' })
  expect(publisher.batches).toEqual([[1], ['other']])
})

it('lets go of a send that the client must have given up by now', async () => {
  const publisher = scriptedPublisher(
    (event) => (event.aggregateId === 'one' ? new Promise<PublishResult>(() => {}) : acked(event)),
    { timeoutMs: 20, settlesWithinMs: 40 },
  )
  const outbox = fixture.outbox({ publisher, ...LONG, maxInFlight: 1 })
  await outbox.start()
  const halfOpen = nextEvent(outbox.events, 'circuit:half-open')
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ aggregateId: 'one' })))
  await halfOpen
  // There is room for another only because nothing holds the first any more.
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await outbox.stop()
  expect((await fixture.rows()).map((row) => row.status)).toEqual(['pending', 'published'])
})

it('probes with an event whose failure was recorded only after the probe was due', async () => {
  let away = true
  const publisher = scriptedPublisher((event) => (away ? failedAs('transient') : acked(event)))
  const outbox = fixture.outbox({ publisher, ...LONG, poller: true })
  await outbox.start()
  const halfOpen = nextEvent(outbox.events, 'circuit:half-open')
  const looked = halfOpen.then(() => nextEvent(outbox.events, 'poll:done'))
  await withRecordsHeld(async () => {
    await outbox.withOutbox(async (_, emit) => emit(newEvent()))
    await looked
    away = false
  })
  await allPublished()
  expect(publisher.batches).toHaveLength(2)
})

/** No failure can be recorded while it runs; a claim leaves out what a record waits for. */
async function withRecordsHeld(work: () => Promise<void>): Promise<void> {
  await fixture.sql.unsafe(`
    create function wait_to_record() returns trigger language plpgsql as $$ begin
      if new.last_error is not null then perform pg_advisory_xact_lock(4712); end if;
      return new;
    end $$;
    create trigger wait_to_record before update on outbox for each row execute function wait_to_record()`)
  try {
    await fixture.sql.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(4712)`
      await work()
    })
  } finally {
    await fixture.sql.unsafe('drop function wait_to_record() cascade')
  }
}

it.each(['broker', 'topic'] as const)(
  'finds something to probe a %s with among hundreds that have to wait for others',
  async (blames) => {
    let away = true
    const publisher = scriptedPublisher((event) => {
      if (!away) return acked(event)
      return { ok: false, kind: 'transient', error: new Error('away'), blames }
    })
    const saver = fixture.handling({}, { immediate: false })
    for (let n = 0; n < 60; n += 1) {
      await saver.withOutbox(async (_, emit) => {
        emit(Array.from({ length: 10 }, (__, lane) => newEvent({ aggregateId: `lane ${lane}` })))
      })
    }
    const outbox = fixture.outbox({ publisher, ...LONG, poller: true, pollInterval: '1h' })
    const opened = nextEvent(outbox.events, 'circuit:open')
    await outbox.start()
    await opened
    away = false
    await allPublished()
    await outbox.stop()
    expect(publisher.batches.flat().length).toBeGreaterThanOrEqual(600)
  },
)
