import { performance } from 'node:perf_hooks'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Lifecycle } from '../../../src/lifecycle.ts'
import { silentLogger } from '../../../src/runtime/logger.ts'
import { OutboxMetrics } from '../../../src/telemetry/outbox-metrics.ts'
import type { WatchedStats } from '../../../src/telemetry/telemetry.ts'
import { defer } from '../../support/timing/deferred.ts'

const STATS: WatchedStats = {
  pending: { count: 3 },
  scheduled: { count: 0 },
  dead: { count: 2 },
  due: 1,
  held: 0,
  lagMs: 1_500,
  paused: [],
}

beforeEach(() => {
  vi.useFakeTimers()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

function watch(stats: () => Promise<WatchedStats>, refreshMs = 10_000) {
  const asked = vi.fn(stats)
  const { events } = new Lifecycle(silentLogger)
  const outbox = { events, stats: asked, activity: () => [] }
  return { asked, metrics: new OutboxMetrics({ outbox, refreshMs, record: () => {} }) }
}

it('does not hold up a scrape while the database hangs, nor asks again before it has answered', async () => {
  const answer = defer<WatchedStats>()
  const { asked, metrics } = watch(() => answer.promise)
  for (let scrape = 0; scrape < 3; scrape += 1) {
    const gauges = metrics.gauges()
    await vi.advanceTimersByTimeAsync(5_000)
    const known = await gauges
    expect(known.get('reachable')).toMatchObject([{ value: 0 }])
    expect(known.has('pending')).toBe(false)
    await vi.advanceTimersByTimeAsync(60_000)
  }
  expect(asked).toHaveBeenCalledTimes(1)
  answer.resolve(STATS)
  await vi.advanceTimersByTimeAsync(0)
  expect((await metrics.gauges()).get('pending')).toMatchObject([{ value: 3 }])
})

it('asks again when what it knows is too old, and reports seconds', async () => {
  const { asked, metrics } = watch(async () => STATS)
  expect((await metrics.gauges()).get('oldest')).toMatchObject([{ value: 1.5 }])
  await vi.advanceTimersByTimeAsync(9_999)
  await metrics.gauges()
  expect(asked).toHaveBeenCalledTimes(1)
  await vi.advanceTimersByTimeAsync(1)
  await metrics.gauges()
  expect(asked).toHaveBeenCalledTimes(2)
})
