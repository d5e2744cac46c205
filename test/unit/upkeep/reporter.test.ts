import { performance } from 'node:perf_hooks'
import { expect, it } from 'vitest'
import { type EventRef } from '../../../src/event/event.ts'
import { Lifecycle, type Path } from '../../../src/lifecycle.ts'
import { silentLogger } from '../../../src/runtime/logger.ts'
import { LATENCY_BOUNDS, Reporter } from '../../../src/upkeep/reporter.ts'

const event = { id: '1', topic: 'orders' } as EventRef

function setUp() {
  const lifecycle = new Lifecycle(silentLogger)
  const since = performance.now() - 5_000
  const delivery = {
    unreachable: () => [
      { publisher: 'kafka', topic: 'orders', since, error: new Error('x'.repeat(2_000)) },
    ],
    activity: () => [
      { publisher: 'kafka', inFlight: 2, unreachable: ['orders'] },
      { publisher: 'rabbit', inFlight: 3, unreachable: [] },
    ],
  }
  const publish = (path: Path, latencyMs: number | null) =>
    lifecycle.tell('event:published', {
      event,
      path,
      latencyMs,
      topic: 'orders',
      key: '1',
      partition: null,
      offset: null,
    })
  return { lifecycle, publish, reporter: new Reporter({ lifecycle, delivery }) }
}

it('counts what was published by each path, and how long the immediate one took', () => {
  const { publish, reporter } = setUp()
  publish('immediate', 0.4)
  publish('immediate', LATENCY_BOUNDS[0]!)
  publish('immediate', LATENCY_BOUNDS[0]! + 0.1)
  publish('immediate', 10 * LATENCY_BOUNDS.at(-1)!)
  publish('fallback', null)
  const { published, latency } = reporter.report()
  expect(published).toEqual({ immediate: 4, fallback: 1 })
  expect(latency).toHaveLength(LATENCY_BOUNDS.length + 1)
  expect([latency[0], latency[1], latency.at(-1)]).toEqual([2, 1, 1])
})

it('counts failures, dead letters and duplicates', () => {
  const { lifecycle, reporter } = setUp()
  const error = new Error('no')
  lifecycle.tell('event:failed', {
    event,
    lane: 1,
    path: 'fallback',
    error,
    attempts: 1,
    retryInMs: 1,
  })
  lifecycle.tell('event:dead', { event, error, attempts: 2 })
  lifecycle.tell('event:duplicate', { event, path: 'fallback' })
  lifecycle.tell('event:duplicate', { event, path: 'fallback' })
  expect(reporter.report()).toMatchObject({ failed: 1, dead: 1, duplicates: 2 })
})

it('says what is out of reach, for how long and why, in few words', () => {
  const { inFlight, circuits } = setUp().reporter.report()
  expect(inFlight).toBe(5)
  expect(circuits).toMatchObject([{ publisher: 'kafka', topic: 'orders' }])
  expect(circuits[0]!.forMs).toBeGreaterThanOrEqual(5_000)
  expect(circuits[0]!.error).toHaveLength(500)
})
