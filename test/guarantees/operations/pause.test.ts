// A paused topic: nothing is sent to it on either path, its events wait and use up no attempts, and go out in order when it
// is resumed. The pause is in the database, so every instance obeys it, and so does one that starts later.
import { afterEach, expect, it } from 'vitest'
import type { Outbox, OutboxOptions } from '../../../src/index.ts'
import { useFixture } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { defer } from '../../support/timing/deferred.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
afterEach(async () => {
  await fixture.sql`truncate outbox_pauses, outbox_instances`
})

/** What docs/operations.md promises for other instances. */
const PROMISE_MS = 15_000

/** Without the end of a pause, nothing wakes this fallback for an hour. */
const BOTH_PATHS = { poller: true, pollInterval: '1h' } as const

type Sent = { topic: string; payload: unknown; at: number }

/** An outbox whose publisher notes what it sends. */
function recording(
  options: Partial<OutboxOptions<Outbox['db']>> = {},
  orderScope: 'topic' | 'publisher' = 'topic',
) {
  const sent: Sent[] = []
  const publisher = scriptedPublisher(
    (event) => {
      const payload = JSON.parse(event.payload) as unknown
      sent.push({ topic: event.topic, payload, at: performance.now() })
      return acked(event)
    },
    { orderScope },
  )
  const outbox = fixture.outbox({ publisher, ...options })
  return { outbox, sent, payloads: () => sent.map(({ payload }) => payload) }
}

type Emitted = [topic: string, payload: unknown, aggregateId?: string]

const emit = (outbox: Outbox, ...events: Emitted[]) =>
  outbox.withOutbox(async (_, emitOne) => {
    for (const [topic, payload, aggregateId] of events) {
      emitOne(newEvent({ topic, payload, ...(aggregateId !== undefined && { aggregateId }) }))
    }
  })

const statuses = async () => (await fixture.rows()).map(({ status }) => status)
const published = (count: number) =>
  waitUntil(
    async () => (await statuses()).filter((status) => status === 'published').length === count,
    { message: `${count} events are published` },
  )

/** As it waits for the end of a pause: held by no process, and as if it had never been tried. */
const UNTOUCHED = { status: 'pending', attempts: 0, leased: false, last_error: null }

it('keeps the events of a paused topic off the immediate path, and sends them when it is resumed', async () => {
  const { outbox, payloads } = recording(BOTH_PATHS)
  await outbox.start()
  expect(await outbox.pause('a', { by: 'Ada', reason: 'the consumer is broken' })).toBe(true)
  expect(await outbox.pause('a')).toBe(false)
  await emit(outbox, ['a', 1])
  await emit(outbox, ['b', 2])
  await published(1)
  expect(await fixture.rows()).toMatchObject([UNTOUCHED, { status: 'published' }])
  expect(payloads()).toEqual([2])
  expect(await outbox.resume('a')).toBe(true)
  await published(2)
  expect(await outbox.resume('a')).toBe(false)
  expect(await fixture.rows()).toMatchObject([{ attempts: 0 }, {}])
})

it('sends the other events of a unit at once', async () => {
  const { outbox } = recording({ poller: false })
  await outbox.start()
  await outbox.pause('a')
  const paths: string[] = []
  outbox.events.on('event:published', ({ event, path }) => paths.push(`${event.topic} ${path}`))
  const sent = nextEvent(outbox.events, 'event:published')
  await emit(outbox, ['a', 1], ['b', 2])
  await sent
  await waitUntil(async () => !(await fixture.rows())[0]!.leased, { message: 'it is given back' })
  expect(await fixture.rows()).toMatchObject([UNTOUCHED, { status: 'published' }])
  expect(paths).toEqual(['b immediate'])
})

it('claims nothing of a paused topic, also by pollOnce() of a process that was not started', async () => {
  const { outbox, payloads } = recording()
  const operator = recording().outbox
  await emit(outbox, ['a', 1], ['b', 2])
  await operator.pause('a')
  expect(await outbox.pollOnce()).toBe(1)
  expect(await outbox.pollOnce()).toBe(0)
  expect(await fixture.rows()).toMatchObject([UNTOUCHED, { status: 'published' }])
  await operator.resume('a')
  expect(await outbox.pollOnce()).toBe(1)
  expect(payloads()).toEqual([2, 1])
})

it('gives back what is queued when the pause arrives, lets the send under way end, and keeps the order', async () => {
  const [started, release] = [defer(), defer()]
  const publisher = scriptedPublisher(
    async (event) => {
      started.resolve()
      await release.promise
      return acked(event)
    },
    { orderScope: 'topic' },
  )
  const outbox = fixture.outbox({ publisher, ...BOTH_PATHS })
  await outbox.start()
  await emit(outbox, ['a', 1, 'one'])
  await started.promise
  await emit(outbox, ['a', 2, 'one'], ['a', 3, 'one'])
  expect(await fixture.rows()).toMatchObject([{ leased: true }, { leased: true }, { leased: true }])
  await outbox.pause('a')
  release.resolve()
  await published(1)
  const givenBack = async () => {
    return (await fixture.rows()).every(({ status, leased }) => status === 'published' || !leased)
  }
  await waitUntil(givenBack, { message: 'the queue is given back' })
  await emit(outbox, ['a', 4, 'one'])
  expect((await fixture.rows()).slice(1)).toMatchObject([UNTOUCHED, UNTOUCHED, UNTOUCHED])
  expect(publisher.batches.flat()).toEqual([1])
  const resumed = outbox.resume('a')
  await emit(outbox, ['a', 5, 'one'])
  await resumed
  await emit(outbox, ['a', 6, 'one'])
  await published(6)
  expect(publisher.batches.flat()).toEqual([1, 2, 3, 4, 5, 6])
})

it('lets the later events of a lane wait behind a paused one for another topic, and no other lane', async () => {
  const { outbox, payloads } = recording(BOTH_PATHS, 'publisher')
  await outbox.start()
  await outbox.pause('a')
  await emit(outbox, ['a', 1, 'one'], ['b', 2, 'one'])
  await emit(outbox, ['b', 3, 'one'])
  await emit(outbox, ['b', 'other', 'two'])
  await published(1)
  // The fallback has looked at both and put them off.
  expect(await outbox.pollOnce()).toBe(0)
  expect(payloads()).toEqual(['other'])
  await outbox.resume('a')
  await published(4)
  expect(payloads()).toEqual(['other', 1, 2, 3])
})

it('pauses everything, and leaves paused by name what was paused by name', async () => {
  const { outbox, payloads } = recording(BOTH_PATHS)
  await outbox.start()
  await outbox.pause('a')
  await outbox.pause(null)
  await emit(outbox, ['a', 1])
  await emit(outbox, ['b', 2])
  expect(await outbox.pollOnce()).toBe(0)
  expect(await fixture.rows()).toMatchObject([UNTOUCHED, UNTOUCHED])
  expect(await outbox.resume('b')).toBe(false)
  expect(await outbox.resume(null)).toBe(true)
  await published(1)
  expect(payloads()).toEqual([2])
  expect(await outbox.pauses()).toMatchObject([{ topic: 'a' }])
  await outbox.resume('a')
  await published(2)
})

it('is obeyed by a process that starts later, before it delivers anything', async () => {
  const before = recording()
  await emit(before.outbox, ['a', 1], ['b', 2])
  await before.outbox.pause('a', { by: 'Ada' })
  await before.outbox.pause('c', { reason: 'later' })
  await before.outbox.stop()
  const { outbox, payloads } = recording(BOTH_PATHS)
  const told: unknown[] = []
  outbox.events.on('topic:paused', (pause) => told.push(pause))
  const polled = nextEvent(outbox.events, 'poll:done', ({ claimed }) => claimed > 0)
  await outbox.start()
  expect(told).toEqual([
    { topic: 'a', by: 'Ada', reason: null },
    { topic: 'c', by: null, reason: 'later' },
  ])
  await emit(outbox, ['a', 3])
  await polled
  expect(await outbox.pollOnce()).toBe(0)
  expect(payloads()).toEqual([2])
  expect(await statuses()).toEqual(['pending', 'published', 'pending'])
})

it('shows what is paused in stats() and health(), which is well', async () => {
  const { outbox } = recording()
  await outbox.pause('a', { by: 'Ada', reason: 'broken' })
  const paused = [{ topic: 'a', since: expect.any(Date) as Date, by: 'Ada', reason: 'broken' }]
  expect(await outbox.pauses()).toEqual(paused)
  expect((await outbox.stats()).paused).toEqual(paused)
  expect(await outbox.health()).toMatchObject({ ok: true, stats: { paused } })
  await emit(outbox, ['a', 1], ['a', 2])
  const { flags } = await outbox.health({ maxPending: 1 })
  expect(flags).toMatchObject([{ flag: 'pending', message: expect.stringMatching(/paused: 'a'/) }])
})

it('refuses what is no topic, and options that it does not know', async () => {
  const { outbox } = recording()
  const refused = { code: 'OPTIONS_INVALID' }
  await expect(outbox.pause('')).rejects.toMatchObject(refused)
  await expect(outbox.pause(undefined as never)).rejects.toMatchObject(refused)
  await expect(outbox.resume(7 as never)).rejects.toMatchObject(refused)
  await expect(outbox.pause('a', { by: '' })).rejects.toMatchObject(refused)
  await expect(outbox.pause('a', { who: 'Ada' } as never)).rejects.toThrow("no option 'who'")
  expect(await outbox.pauses()).toEqual([])
})

it('is obeyed and ended by another instance under load within the promised time', async () => {
  const operator = recording()
  const { outbox, sent } = recording(BOTH_PATHS)
  await operator.outbox.start()
  await outbox.start()
  const work = { goesOn: true }
  const load = (async () => {
    for (let n = 0; work.goesOn; n += 1) await emit(outbox, ['a', n, 'one'], ['b', n, 'one'])
  })()
  await waitUntil(() => sent.length > 50, { message: 'it is under load' })
  const heard = nextEvent(outbox.events, 'topic:paused')
  await operator.outbox.pause('a', { by: 'Ada' })
  const pausedAt = performance.now()
  expect(await heard).toEqual({ topic: 'a', by: 'Ada', reason: null })
  expect(performance.now() - pausedAt).toBeLessThan(PROMISE_MS)
  const heardAt = performance.now()
  const count = sent.length
  await waitUntil(() => sent.length > count + 50, { message: 'the other topic goes on' })
  expect(sent.filter(({ topic, at }) => topic === 'a' && at > heardAt)).toEqual([])

  const over = nextEvent(outbox.events, 'topic:resumed')
  await operator.outbox.resume('a')
  const resumedAt = performance.now()
  await over
  expect(performance.now() - resumedAt).toBeLessThan(PROMISE_MS)
  work.goesOn = false
  await load
  await waitUntil(async () => (await statuses()).every((one) => one === 'published'), {
    message: 'the backlog drains',
  })
  const ofA = sent.filter(({ topic }) => topic === 'a').map(({ payload }) => payload as number)
  expect(ofA).toEqual(ofA.toSorted((one, other) => one - other))
}, 60_000)
