// The sampler: one look every five seconds for all pages, an hour of samples, and no statement when nobody asks.
import { performance } from 'node:perf_hooks'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Sampler } from '../../../src/dashboard/sampler.ts'
import type { Look } from '../../../src/dashboard/source.ts'
import { StoreError } from '../../../src/index.ts'
import { sampleStats } from '../../support/doubles/sample-instance.ts'

const HOUR_MS = 3_600_000

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout', 'Date'],
  })
  const begunAt = Date.now()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now() - begunAt)
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

function sampling() {
  const looks: { resolve: (look: Look) => void; reject: (error: unknown) => void }[] = []
  const clock = { isSlow: false, error: null as unknown }
  const look = (): Look => ({
    clockMs: 1_000_000 + performance.now(),
    stats: sampleStats(),
    instances: [],
    pauses: [],
  })
  const sampler = new Sampler(
    () =>
      new Promise((resolve, reject) => {
        looks.push({ resolve, reject })
        if (clock.isSlow) return
        if (clock.error) reject(clock.error)
        else resolve(look())
      }),
  )
  return { sampler, looks, clock, look }
}

it('does nothing before the first request', async () => {
  const { looks } = sampling()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(looks).toHaveLength(0)
})

it('looks once for requests that come at once, and once every five seconds for all', async () => {
  const { sampler, looks } = sampling()
  await Promise.all([sampler.seen(), sampler.seen(), sampler.seen()])
  expect(looks).toHaveLength(1)
  for (let second = 0; second < 60; second += 1) {
    await vi.advanceTimersByTimeAsync(1_000)
    await Promise.all([sampler.seen(), sampler.seen()])
  }
  expect(looks).toHaveLength(13)
})

it('returns the samples since the last one that a page has', async () => {
  const { sampler } = sampling()
  await sampler.seen()
  await vi.advanceTimersByTimeAsync(10_000)
  const all = sampler.samples(null)
  expect(all.map(({ at }) => at - all[0]!.at)).toEqual([0, 5_000, 10_000])
  expect(sampler.samples(all[1]!.at)).toEqual([all[2]])
  expect(sampler.samples(all[2]!.at)).toEqual([])
})

it('keeps an hour of samples', async () => {
  const { sampler } = sampling()
  for (let minute = 0; minute < 90; minute += 1) {
    await sampler.seen()
    await vi.advanceTimersByTimeAsync(60_000)
  }
  const all = sampler.samples(null)
  expect(all).toHaveLength(720)
  expect(all.at(-1)!.at - all[0]!.at).toBeLessThan(HOUR_MS)
})

it('stops when nobody has asked for an hour, and begins again with the next request', async () => {
  const { sampler, looks } = sampling()
  await sampler.seen()
  await vi.advanceTimersByTimeAsync(HOUR_MS)
  const before = looks.length
  await vi.advanceTimersByTimeAsync(HOUR_MS)
  expect(looks).toHaveLength(before)
  expect(vi.getTimerCount()).toBe(0)
  const { agoMs } = await sampler.seen()
  expect(agoMs).toBeLessThan(5_000)
  expect(looks).toHaveLength(before + 1)
})

it('begins no look while one is late, and says for how long', async () => {
  const { sampler, looks, clock, look } = sampling()
  await sampler.seen()
  clock.isSlow = true
  await vi.advanceTimersByTimeAsync(30_000)
  expect(looks).toHaveLength(2)
  const late = sampler.seen()
  await vi.advanceTimersByTimeAsync(0)
  expect(await late).toMatchObject({ agoMs: 30_000, lateMs: 25_000 })
  clock.isSlow = false
  looks[1]!.resolve(look())
  await vi.advanceTimersByTimeAsync(0)
  expect(await sampler.seen()).toMatchObject({ agoMs: 0, lateMs: 0 })
})

it('fails while the last look failed, without asking again for each page', async () => {
  const { sampler, looks, clock } = sampling()
  clock.error = new StoreError('STORE_FAILED', 'away')
  await expect(sampler.seen()).rejects.toThrow('away')
  await expect(sampler.seen()).rejects.toThrow('away')
  expect(looks).toHaveLength(1)
  clock.error = null
  await vi.advanceTimersByTimeAsync(5_000)
  expect(await sampler.seen()).toMatchObject({ agoMs: 0 })
})

it('shows what it saw last while a lock keeps it from the table', async () => {
  const { sampler, clock } = sampling()
  await sampler.seen()
  clock.error = new StoreError('STORE_FAILED', 'locked', {
    cause: Object.assign(new Error(), { code: '55P03' }),
  })
  await vi.advanceTimersByTimeAsync(5_000)
  expect(await sampler.seen()).toMatchObject({ isLocked: true, agoMs: 5_000 })
})

it('shows a pause at once', async () => {
  const { sampler } = sampling()
  await sampler.seen()
  const pause = { topic: 'orders', since: new Date(), by: 'ada', reason: null }
  sampler.learn([pause])
  expect((await sampler.seen()).pauses).toEqual([pause])
})
