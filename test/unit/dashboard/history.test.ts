// What instances wrote of themselves, put together for the plots.
import { expect, it } from 'vitest'
import { HistoryReader, merge } from '../../../src/dashboard/history.ts'
import type { HistoryMinute, PastInstance } from '../../../src/store/outbox/control-store.ts'

const NOON = Date.parse('2026-11-18T12:00:00Z')
const MINUTE_MS = 60_000

type Given = {
  readonly id?: string
  readonly seenMsAgo?: number | null
  readonly topics?: string[]
  /** How long before noon the last minute began. */
  readonly lastBegan?: number
  readonly minutes: (HistoryMinute | 0)[]
}

function past({ id = 'one', seenMsAgo = 0, lastBegan = MINUTE_MS, ...given }: Given): PastInstance {
  const { topics = ['orders', 'payments'], minutes } = given
  return {
    id,
    workerId: `worker-${id}`,
    host: 'host',
    startedAt: new Date(NOON - 3_600_000),
    seenMsAgo,
    writtenAt: new Date(NOON),
    history: { topics, lastBeganMsAgo: lastBegan, minutes },
  }
}

const sent = (immediate: number, topic = 0): HistoryMinute => ({
  sent: [[topic, immediate, 0, 0]],
})

/** By how many minutes before noon each ends, as events a minute. */
function perMinute(histories: PastInstance[], filter = {}) {
  return merge(histories, filter).samples.map(({ at, immediate }) => [
    (at - NOON) / MINUTE_MS,
    Math.round(immediate! * 60),
  ])
}

it('adds up what instances did in the same minute, whenever their minutes begin', () => {
  const one = past({ minutes: [sent(60), sent(30)] })
  const other = past({ id: 'other', lastBegan: 1.4 * MINUTE_MS, minutes: [sent(6), 0, sent(3)] })
  expect(perMinute([one, other])).toEqual([
    [-2, 6],
    [-1, 60],
    [0, 33],
  ])
})

it('leaves out minutes that nobody knows, and those that a running instance has still to write', () => {
  const killed = past({ seenMsAgo: 600_000, lastBegan: 10 * MINUTE_MS, minutes: [sent(1)] })
  const running = past({ id: 'b', lastBegan: 2 * MINUTE_MS, minutes: [sent(2)] })
  const quicker = past({ id: 'c', minutes: [sent(4), sent(5)] })
  expect(perMinute([killed, running, quicker])).toEqual([
    [-9, 1],
    [-1, 6],
  ])
  // One that has not written for longer is not waited for.
  const behind = past({ id: 'd', lastBegan: 8 * MINUTE_MS, minutes: [sent(7)] })
  expect(perMinute([behind, quicker])).toEqual([
    [-7, 7],
    [-1, 4],
  ])
})

it('counts the end of an instance that has stopped', () => {
  const stopped = past({ seenMsAgo: null, lastBegan: 10_000, minutes: [sent(1), sent(2)] })
  expect(perMinute([stopped]).map(([, count]) => count)).toEqual([1, 2])
  expect(merge([stopped], {}).instances).toEqual([
    { id: 'one', workerId: 'worker-one', host: 'host', state: 'stopped' },
  ])
})

it('shows one instance or one topic alone', () => {
  const one = past({
    minutes: [
      {
        sent: [
          [0, 5, 0, 0],
          [1, 7, 0, 0],
        ],
        took: [3, 12],
      },
    ],
  })
  const other = past({
    id: 'other',
    topics: ['payments'],
    minutes: [
      {
        sent: [
          [0, 70, 0, 0],
          [-1, 9, 0, 0],
        ],
      },
    ],
  })
  expect(perMinute([one, other])).toEqual([[0, 91]])
  expect(perMinute([one, other], { instance: 'other' })).toEqual([[0, 79]])
  expect(perMinute([one, other], { topic: 'payments' })).toEqual([[0, 77]])
  expect(perMinute([one, other], { topic: 'orders', instance: 'other' })).toEqual([[0, 0]])
  expect(merge([one, other], { topic: 'orders' }).samples[0]!.latency).toBeNull()
  expect(merge([one, other], {})).toMatchObject({ topics: ['orders', 'payments'] })
})

it('knows latencies of all together, and the table where someone looked', () => {
  const one = past({ minutes: [{ took: [2, 99], table: [5, 100, 1] }] })
  const other = past({ id: 'other', minutes: [{ took: [9, 99], table: [8, 90, 2] }] })
  const [sample] = merge([one, other], {}).samples
  expect(sample).toMatchObject({ pending: 8, oldestMs: 90, dead: 2 })
  expect(sample!.latency!.p50Ms).toBe(5)
  expect(sample!.latency!.p95Ms).toBeGreaterThan(500)
  expect(merge([past({ minutes: [0] })], {}).samples).toMatchObject([
    { pending: null, oldestMs: null, dead: null, immediate: 0, failed: 0, latency: null },
  ])
})

it('reads once for all that ask at the same time, and again after it failed', async () => {
  let reads = 0
  let isAway = true
  const reader = new HistoryReader(async () => {
    reads += 1
    if (isAway) throw new Error('away')
    return [past({ minutes: [0] })]
  })
  const url = new URL('http://localhost/history')
  await expect(reader.answer(url)).rejects.toThrow('away')
  isAway = false
  await Promise.all([reader.answer(url), reader.answer(url)])
  await reader.answer(url)
  expect(reads).toBe(2)
})
