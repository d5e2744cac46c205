import { performance } from 'node:perf_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, expect, it, vi } from 'vitest'
import { Circuits } from '../../../src/delivery/circuits.ts'
import { Fallback } from '../../../src/delivery/fallback.ts'
import { Gate } from '../../../src/delivery/gate.ts'
import { Leases } from '../../../src/delivery/leases.ts'
import { OwnEvents } from '../../../src/delivery/own-events.ts'
import { Pauses } from '../../../src/delivery/pauses.ts'
import { Recorder } from '../../../src/delivery/record.ts'
import { Sender } from '../../../src/delivery/send.ts'
import { Upcoming } from '../../../src/delivery/upcoming.ts'
import type { PollDone } from '../../../src/index.ts'
import { Lifecycle } from '../../../src/lifecycle.ts'
import { resolveOptions } from '../../../src/options/options.ts'
import { EVERY_TOPIC } from '../../../src/publishers/router.ts'
import { Bell } from '../../../src/runtime/bell.ts'
import type { ClaimRequest } from '../../../src/store/outbox/outbox-store.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'
import { acked, failedAs, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { defer } from '../../support/timing/deferred.ts'

afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

interface Given {
  readonly claim: (request: ClaimRequest) => Promise<ReturnType<typeof outboxEvent>[]>
  readonly dueTopics?: readonly string[]
  readonly nextInMs?: number | null
  readonly waitingLanes?: number[]
  readonly publisher?: ReturnType<typeof scriptedPublisher>
}

function setUp({
  claim,
  dueTopics = ['fine'],
  nextInMs = null,
  waitingLanes = [],
  publisher = scriptedPublisher(acked),
}: Given) {
  vi.useFakeTimers()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
  const logger = recordingLogger()
  const options = resolveOptions({
    db: { execute: async () => [], transaction: async () => {} },
    publisher,
    logger,
  })
  const lifecycle = new Lifecycle(logger)
  const polls: PollDone[] = []
  lifecycle.events.on('poll:done', (poll) => polls.push(poll))
  const [bell, waiting] = [new Bell(), new Bell()]
  const rung = vi.fn()
  waiting.onRing(rung)
  const circuits = new Circuits({ publisher: 'scripted', lifecycle, logger, bell })
  const leases = new Leases({ renew: async () => new Map() }, options.thresholdMs)
  const pauses = new Pauses({ lifecycle, logger, bell })
  const gate = new Gate({ circuits, pauses, leases, topics: EVERY_TOPIC, maxInFlight: 10 })
  const store = {
    recordPublished: async (ids: readonly string[]) => new Set(ids),
    recordFailed: async () => new Map<string, string>(),
  }
  const recorder = new Recorder({ store, options, lifecycle, bell, own: new OwnEvents(10) })
  const sender = new Sender({
    name: 'scripted',
    publisher,
    lifecycle,
    options,
    gate,
    circuits,
    recorder,
  })
  const claims: ClaimRequest[] = []
  const upcoming = new Upcoming()
  let looks = 0
  const fallback = new Fallback({
    store: {
      claim: async (request) => {
        claims.push(request)
        const events = await claim(request)
        return {
          events,
          isFull: events.length === request.limit,
          waitingLanes: waitingLanes.splice(0),
        }
      },
      wake: async () => {},
      dueTopics: async () => {
        looks += 1
        return { topics: dueTopics, nextInMs }
      },
    },
    waiting,
    upcoming,
    destination: { name: 'scripted', publisher, topics: EVERY_TOPIC },
    options,
    lifecycle,
    gate,
    leases,
    sender,
    recorder,
  })
  return {
    fallback,
    circuits,
    leases,
    claims,
    polls,
    logger,
    publisher,
    rung,
    upcoming,
    looks: () => looks,
  }
}

it('sends what it claims, drops the leases, and looks again while something went out', async () => {
  const left = [outboxEvent(), outboxEvent()]
  const { fallback, leases, polls, publisher } = setUp({ claim: async () => left.splice(0) })
  expect(await fallback.run(() => true)).toBe(true)
  expect(await fallback.run(() => true)).toBe(false)
  expect(publisher.batches.flat()).toHaveLength(2)
  await vi.advanceTimersByTimeAsync(0)
  expect(leases.size).toBe(0)
  expect(polls.map(({ claimed }) => claimed)).toEqual([2, 0])
})

const topicsOf = ({ from }: ClaimRequest) => ('topics' in from ? from.topics : [])

it('does not look for a probe with every round when there is none', async () => {
  const { fallback, circuits, claims } = setUp({
    claim: async () => [],
    dueTopics: ['a', 'fine'],
  })
  circuits.failed('a', new Error('away'))
  await vi.advanceTimersByTimeAsync(500)
  for (let n = 0; n < 5; n += 1) await fallback.runOnce()
  expect(claims.filter((claim) => topicsOf(claim).includes('a'))).toHaveLength(1)
  expect(claims.filter((claim) => topicsOf(claim).includes('fine'))).toHaveLength(5)
  circuits.stop()
})

it('looks once for all claims of a backlog, in all of its rounds, and again at its end', async () => {
  let left = 20
  const { fallback, claims, looks } = setUp({
    claim: async ({ limit }) => {
      await nextTurn()
      return left-- > 0 ? Array.from({ length: limit }, () => outboxEvent()) : []
    },
  })
  const running = fallback.run(() => true)
  await vi.advanceTimersByTimeAsync(0)
  await running
  expect(claims.length).toBeGreaterThan(20)
  // The first one; and when a claim finds nothing, one for each of the three rounds.
  expect(looks()).toBeLessThanOrEqual(4)
})

it('claims nothing when nothing is due', async () => {
  const { fallback, claims, polls } = setUp({ claim: async () => [], dueTopics: [] })
  expect(await fallback.run(() => true)).toBe(false)
  expect(claims).toEqual([])
  expect(polls).toHaveLength(1)
})

it('begins with another topic each time, so that a backlog holds up no other', async () => {
  const { fallback, claims } = setUp({ claim: async () => [], dueTopics: ['a', 'b'] })
  for (let n = 0; n < 3; n += 1) await fallback.runOnce()
  expect(claims.map(topicsOf)).toEqual([
    ['a', 'b'],
    ['b', 'a'],
    ['a', 'b'],
  ])
})

it('looks at lanes that wait, for a while, until it has taken from them', async () => {
  const left: ReturnType<typeof outboxEvent>[][] = [[], [{ ...outboxEvent(), lane: 7 }]]
  const { fallback, claims, rung } = setUp({
    claim: async () => left.shift() ?? [],
    waitingLanes: [7, 8],
  })
  await fallback.runOnce()
  expect(rung).toHaveBeenCalledTimes(1)
  await fallback.runOnce()
  await fallback.runOnce()
  await vi.advanceTimersByTimeAsync(60_001)
  await fallback.runOnce()
  const lanes = claims.map(({ from }) => ('lanes' in from ? from.lanes : 'due'))
  expect(lanes).toEqual(['due', [7, 8], 'due', [8], 'due', [8], 'due', 'due'])
})

it('tells of a claim that failed while the next one is under way', async () => {
  const { fallback, claims, publisher } = setUp({
    claim: async ({ from }) => {
      // Rejections that nobody looks at in time end the process, and this test.
      if ('lanes' in from) throw new Error('the database is away')
      await vi.advanceTimersByTimeAsync(100)
      return claims.length > 1 ? [outboxEvent()] : []
    },
    waitingLanes: [7],
  })
  await expect(fallback.runOnce()).rejects.toThrow('the database is away')
  expect(publisher.batches.flat()).toHaveLength(1)
})

it('looks again before it says that nothing is left of a backlog', async () => {
  const topics = ['a']
  let left = 250
  const { fallback } = setUp({
    claim: async ({ from }) => {
      const batch = Array.from(
        { length: topicsOf({ from } as ClaimRequest).includes('a') ? left : 0 },
        () => outboxEvent(),
      )
      left = 0
      return topicsOf({ from } as ClaimRequest).includes('b') ? [outboxEvent()] : batch
    },
    dueTopics: topics,
  })
  expect((await fallback.runOnce()).claimed).toBe(250)
  topics.splice(0, 1, 'b')
  expect((await fallback.runOnce()).claimed).toBe(1)
})

it('claims no fewer events because the claim of a probe failed', async () => {
  const { fallback, circuits, claims } = setUp({
    claim: async ({ limit }) => {
      if (limit === 1) throw new Error('too slow')
      return []
    },
    dueTopics: ['a', 'fine'],
  })
  circuits.failed('a', new Error('away'))
  await vi.advanceTimersByTimeAsync(500)
  await expect(fallback.runOnce()).rejects.toThrow('too slow')
  await expect(fallback.runOnce()).rejects.toThrow('too slow')
  expect(claims.map(({ limit }) => limit)).toEqual([250, 1, 250, 1])
  circuits.stop()
})

it('gives back a claim that took longer than half the threshold, and takes half as many next', async () => {
  const { fallback, claims, leases, logger, publisher } = setUp({
    claim: async () => {
      const event = outboxEvent()
      await vi.advanceTimersByTimeAsync(4_000)
      return [event]
    },
  })
  const began = performance.now()
  expect(await fallback.runOnce()).toMatchObject({ claimed: 1, isFull: false, mayBeMore: true })
  expect(performance.now() - began).toBe(4_000)
  expect(publisher.batches).toEqual([])
  expect(leases.size).toBe(0)
  await fallback.runOnce()
  expect(claims.map(({ limit }) => limit)).toEqual([250, 125])
  expect(logger.lines[0]?.message).toMatch(/longer than half the threshold/)
})

it('keeps the size of its claims while a topic with a backlog is merely busy', async () => {
  const held = defer()
  const publisher = scriptedPublisher(
    async (event) => {
      await held.promise
      return acked(event)
    },
    { orderScope: 'topic', batchSize: 1_000 },
  )
  const { fallback, claims } = setUp({
    publisher,
    claim: async ({ limit }) => Array.from({ length: limit }, () => outboxEvent({ topic: 'fine' })),
  })
  for (let n = 0; n < 3; n += 1) {
    const round = fallback.runOnce()
    await vi.advanceTimersByTimeAsync(1_000)
    await round
  }
  // Three sends are under way, so this one claims nothing.
  await fallback.runOnce()
  held.resolve()
  await vi.advanceTimersByTimeAsync(0)
  await fallback.runOnce()
  expect(claims.map(({ limit }) => limit)).toEqual([250, 500, 1_000, 1_000])
})

it('does not look at a lane whose event failed, even if its round left the send alone', async () => {
  const held = defer()
  const publisher = scriptedPublisher(
    async () => {
      await held.promise
      return failedAs('rejected')
    },
    { orderScope: 'topic' },
  )
  const left = [[outboxEvent({ topic: 'fine', lane: 7 })]]
  const { fallback, claims } = setUp({
    publisher,
    claim: async () => left.shift() ?? [],
    waitingLanes: [7],
  })
  const round = fallback.runOnce()
  await vi.advanceTimersByTimeAsync(1_000)
  await round
  const looksAtLanes = () => claims.splice(0).filter(({ from }) => 'lanes' in from).length
  claims.splice(0)
  await fallback.runOnce()
  expect(looksAtLanes()).toBe(1)
  held.resolve()
  await vi.advanceTimersByTimeAsync(0)
  await fallback.runOnce()
  expect(looksAtLanes()).toBe(0)
})

it('remembers from each look when the next scheduled event is due', async () => {
  const { fallback, upcoming } = setUp({ claim: async () => [], nextInMs: 1_500 })
  await fallback.runOnce()
  expect(upcoming.inMs).toBe(1_501)
})
