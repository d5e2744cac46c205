// A destination that is out of reach costs a look now and then, not a storm of them: events that cannot be sent wake no
// fallback, and of a topic in trouble no more is claimed than a probe.
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { type Outbox, type OutboxEvent, routerPublisher } from '../../../src/index.ts'
import { useFixture } from '../../support/fixture.ts'
import { acked, failedAs, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { defer } from '../../support/timing/deferred.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

const WINDOW_MS = 2_000
const MOST_POLLS = 10
/** A claim puts off up to 250 events that have to wait, so one look for a hundred of them is enough on any machine. */
const mostPollsFor = (units: number, ms: number) => mostPollsIn(ms) + units / 100
const mostPollsIn = (ms: number) => (MOST_POLLS * ms) / WINDOW_MS

/** The window that is counted, not a wait for anything: as long as it says, or longer if the load needs it. Returns how long. */
async function countedWindow(isLoaded: () => boolean = () => true): Promise<number> {
  const begunAt = performance.now()
  await delay(WINDOW_MS)
  await waitUntil(isLoaded, { message: 'enough has been committed meanwhile' })
  return performance.now() - begunAt
}

/** Units of work one after another on a few lines, until the test ends it. */
function keepEmitting(outbox: Outbox, topics: readonly string[]) {
  const work = { goesOn: true }
  let committed = 0
  const lines = topics.map(async (topic, line) => {
    while (work.goesOn) {
      const aggregateId = `${line}-${committed % 20}`
      await outbox.withOutbox(async (_, emit) => emit(newEvent({ topic, aggregateId })))
      committed += 1
    }
  })
  return {
    committed: () => committed,
    async end() {
      work.goesOn = false
      await Promise.all(lines)
    },
  }
}

function countPolls(outbox: Outbox) {
  const polls = { count: 0, claimed: 0 }
  outbox.events.on('poll:done', ({ claimed }) => {
    polls.count += 1
    polls.claimed += claimed
  })
  return polls
}

it('looks no more than ten times in two seconds after a circuit has opened under load', async () => {
  let away = false
  const answer = async (event: OutboxEvent) => {
    await delay(2)
    return away ? failedAs('transient') : acked(event)
  }
  const outbox = fixture.outbox({ publisher: scriptedPublisher(answer), poller: true })
  await outbox.start()
  const load = keepEmitting(outbox, ['a', 'b', 'c', 'd'])
  await waitUntil(() => load.committed() > 100, { message: 'it is under load' })
  const opened = nextEvent(outbox.events, 'circuit:open')
  away = true
  await opened
  const polls = countPolls(outbox)
  const before = load.committed()
  const ms = await countedWindow(() => load.committed() - before > 50)
  expect(polls.count).toBeLessThanOrEqual(mostPollsIn(ms))
  await load.end()
  away = false
  await waitUntil(async () => (await outbox.stats()).pending.count === 0, {
    message: 'all that waited goes out when the destination is back',
  })
})

it('claims one event at a time of a topic that is missing, while the others go on at once', async () => {
  const answer = (event: OutboxEvent) =>
    event.topic === 'missing' ? failedAs('transient', 'topic') : acked(event)
  const outbox = fixture.outbox({ publisher: scriptedPublisher(answer), poller: true })
  await outbox.start()
  const opened = nextEvent(outbox.events, 'circuit:open')
  const load = keepEmitting(outbox, ['missing', 'fine', 'missing', 'fine'])
  await opened
  const polls = countPolls(outbox)
  const paths = new Set<string>()
  outbox.events.on('event:published', ({ path }) => paths.add(path))
  const ms = await countedWindow()
  const { count, claimed } = polls
  await load.end()
  expect(count).toBeLessThanOrEqual(mostPollsIn(ms))
  expect(claimed).toBeLessThanOrEqual(mostPollsIn(ms))
  expect([...paths]).toEqual(['immediate'])
})

it('wakes one fallback and leaves the others alone', async () => {
  let away = false
  const near = scriptedPublisher(acked)
  const far = scriptedPublisher((event) => (away ? failedAs('transient') : acked(event)))
  const publisher = routerPublisher({ publishers: { near, far }, routes: { a: 'near', b: 'far' } })
  const outbox = fixture.outbox({ publisher, poller: true })
  await outbox.start()
  const load = keepEmitting(outbox, ['a', 'b'])
  await waitUntil(() => load.committed() > 20, { message: 'it is under load' })
  const opened = nextEvent(outbox.events, 'circuit:open')
  away = true
  await opened
  const byPublisher = { near: 0, far: 0 }
  outbox.events.on('poll:done', ({ publisher: name }) => {
    byPublisher[name as 'near' | 'far'] += 1
  })
  const ms = await countedWindow()
  const { near: polledNear, far: polledFar } = byPublisher
  await load.end()
  expect(polledFar).toBeLessThanOrEqual(mostPollsIn(ms))
  expect(polledNear).toBeLessThanOrEqual(2)
})

it('does not look with each unit of work for events that wait behind one in flight, with no room in memory', async () => {
  const release = defer()
  const publisher = scriptedPublisher(async (event) => {
    await release.promise
    return acked(event)
  })
  const outbox = fixture.outbox({ publisher, poller: true, maxInFlight: 1 })
  await outbox.start()
  const aggregateId = 'hot'
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ aggregateId })))
  await waitUntil(() => publisher.batches.length === 1, { message: 'the first is in flight' })
  const polls = countPolls(outbox)
  const begunAt = performance.now()
  const past = () => performance.now() - begunAt
  let committed = 1
  for (; past() < WINDOW_MS || committed <= 20; committed += 1) {
    await outbox.withOutbox(async (_, emit) => emit(newEvent({ aggregateId })))
  }
  expect(polls.count).toBeLessThanOrEqual(mostPollsFor(committed, past()))
  release.resolve()
  await waitUntil(async () => (await outbox.stats()).pending.count === 0, {
    message: 'all that waited goes out, an hour before the next poll',
  })
})

it('does not look with each of many topics that are missing', async () => {
  const publisher = scriptedPublisher(() => failedAs('transient', 'topic'))
  const outbox = fixture.outbox({ publisher, poller: true })
  await outbox.start()
  for (let n = 0; n < 40; n += 1) {
    await outbox.withOutbox(async (_, emit) => emit(newEvent({ topic: `missing-${n}` })))
  }
  await waitUntil(() => publisher.batches.flat().length >= 40, { message: 'all were tried' })
  const polls = countPolls(outbox)
  const ms = await countedWindow(() => polls.count > 0)
  expect(polls.count).toBeLessThanOrEqual(mostPollsIn(ms))
})

it('does not look with each unit of work for events behind one that rests, without the immediate path', async () => {
  const publisher = scriptedPublisher((event) =>
    event.aggregateId === 'stuck' ? failedAs('rejected') : acked(event),
  )
  const outbox = fixture.outbox({
    publisher,
    poller: true,
    immediate: false,
    backoffBase: '1h',
    backoffMax: '1h',
  })
  await outbox.start()
  const emit = (aggregateId: string) =>
    outbox.withOutbox(async (_, save) => save(newEvent({ aggregateId })))
  const failed = nextEvent(outbox.events, 'event:failed')
  await emit('stuck')
  await failed
  const polls = countPolls(outbox)
  const begunAt = performance.now()
  const past = () => performance.now() - begunAt
  let committed = 0
  for (; past() < WINDOW_MS; committed += 1) await emit('stuck')
  expect(polls.count).toBeLessThanOrEqual(mostPollsFor(committed, past()))
  // Another aggregate goes out all the same.
  const published = nextEvent(outbox.events, 'event:published')
  await emit('free')
  expect((await published).event.aggregateId).toBe('free')
})
