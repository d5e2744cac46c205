import { performance } from 'node:perf_hooks'
import { afterEach, expect, it, vi } from 'vitest'
import { Circuits } from '../../../src/delivery/circuits.ts'
import { Fallback } from '../../../src/delivery/fallback.ts'
import { Gate } from '../../../src/delivery/gate.ts'
import { Leases } from '../../../src/delivery/leases.ts'
import { Recorder } from '../../../src/delivery/record.ts'
import { Sender } from '../../../src/delivery/send.ts'
import type { PollDone } from '../../../src/index.ts'
import { Lifecycle } from '../../../src/lifecycle.ts'
import { resolveOptions } from '../../../src/options/options.ts'
import { EVERY_TOPIC } from '../../../src/publishers/router.ts'
import { Bell } from '../../../src/runtime/bell.ts'
import type { ClaimRequest } from '../../../src/store/outbox/outbox-store.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'
import { acked, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'

afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

function setUp(claim: (request: ClaimRequest) => Promise<ReturnType<typeof outboxEvent>[]>) {
  vi.useFakeTimers()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
  const publisher = scriptedPublisher(acked)
  const logger = recordingLogger()
  const options = resolveOptions({
    db: { execute: async () => [], transaction: async () => {} },
    publisher,
    logger,
  })
  const lifecycle = new Lifecycle(logger)
  const polls: PollDone[] = []
  lifecycle.events.on('poll:done', (poll) => polls.push(poll))
  const bell = new Bell()
  const circuits = new Circuits({ publisher: 'scripted', lifecycle, logger, bell })
  const leases = new Leases({ renew: async () => new Map() }, options.thresholdMs)
  const gate = new Gate({ circuits, leases, topics: EVERY_TOPIC, maxInFlight: 10 })
  const store = {
    recordPublished: async (ids: readonly string[]) => new Set(ids),
    recordFailed: async () => new Map<string, string>(),
  }
  const recorder = new Recorder({ store, options, lifecycle, bell })
  const sender = new Sender({ publisher, options, gate, circuits, recorder })
  const claims: ClaimRequest[] = []
  const fallback = new Fallback({
    store: {
      claim: async (request) => {
        claims.push(request)
        return await claim(request)
      },
    },
    destination: { name: 'scripted', publisher, topics: EVERY_TOPIC },
    options,
    lifecycle,
    gate,
    leases,
    sender,
    recorder,
  })
  return { fallback, circuits, leases, claims, polls, logger, publisher }
}

it('sends what it claims, drops the leases, and looks again while something went out', async () => {
  const left = [outboxEvent(), outboxEvent()]
  const { fallback, leases, polls, publisher } = setUp(async () => left.splice(0))
  expect(await fallback.run(() => true)).toBe(true)
  expect(await fallback.run(() => true)).toBe(false)
  expect(publisher.batches.flat()).toHaveLength(2)
  await vi.advanceTimersByTimeAsync(0)
  expect(leases.size).toBe(0)
  expect(polls.map(({ claimed }) => claimed)).toEqual([2, 0])
})

it('does not look for a probe with every round when there is none', async () => {
  const { fallback, circuits, claims } = setUp(async () => [])
  circuits.failed('a', new Error('away'))
  await vi.advanceTimersByTimeAsync(500)
  for (let n = 0; n < 5; n += 1) await fallback.runOnce()
  const probes = claims.filter(({ onlyTopics }) => onlyTopics?.includes('a'))
  expect(probes).toHaveLength(1)
  expect(claims.filter(({ exceptTopics }) => exceptTopics.includes('a'))).toHaveLength(5)
  circuits.stop()
})

it('claims no fewer events because the claim of a probe failed', async () => {
  const { fallback, circuits, claims } = setUp(async ({ limit }) => {
    if (limit === 1) throw new Error('too slow')
    return []
  })
  circuits.failed('a', new Error('away'))
  await vi.advanceTimersByTimeAsync(500)
  await expect(fallback.runOnce()).rejects.toThrow('too slow')
  await expect(fallback.runOnce()).rejects.toThrow('too slow')
  expect(claims.map(({ limit }) => limit)).toEqual([250, 1, 250, 1])
  circuits.stop()
})

it('gives back a claim that took longer than half the threshold, and takes half as many next', async () => {
  const { fallback, claims, leases, logger, publisher } = setUp(async () => {
    const event = outboxEvent()
    await vi.advanceTimersByTimeAsync(4_000)
    return [event]
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
