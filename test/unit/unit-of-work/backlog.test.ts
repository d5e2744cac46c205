import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Backlog } from '../../../src/unit-of-work/backlog.ts'
import { defer } from '../../support/timing/deferred.ts'

let recorder = { endedCount: 0 }

let now = 0
beforeEach(() => {
  now = 0
  recorder = { endedCount: 0 }
  vi.spyOn(performance, 'now').mockImplementation(() => now)
})
afterEach(() => {
  vi.restoreAllMocks()
})

it('counts at most once a second', async () => {
  const countPending = vi.fn(async () => 0)
  const backlog = new Backlog({ store: { countPending }, max: 10, recorder })
  for (; now < 2_500; now += 100) await backlog.refresh()
  expect(countPending).toHaveBeenCalledTimes(3)
})

it('does not make a unit of work wait for a count while there is room by the last one', async () => {
  const countPending = vi.fn<() => Promise<number>>().mockResolvedValueOnce(9)
  const backlog = new Backlog({ store: { countPending }, max: 10, recorder })
  await backlog.refresh()
  const second = defer<number>()
  countPending.mockReturnValueOnce(second.promise)
  now = 1_000
  await backlog.refresh()
  await backlog.refresh()
  expect(countPending).toHaveBeenCalledTimes(2)
  expect(() => backlog.check(() => 2)).toThrow(expect.objectContaining({ code: 'BACKLOG_FULL' }))
  second.resolve(0)
  await vi.waitFor(() => backlog.check(() => 10))
})

it('does not forget what was saved while a count was under way', async () => {
  const counted = defer<number>()
  const backlog = new Backlog({ store: { countPending: () => counted.promise }, max: 10, recorder })
  backlog.saved(3)
  const refreshed = backlog.refresh()
  backlog.saved(4)
  counted.resolve(3)
  await refreshed
  expect(() => backlog.check(() => 4)).toThrow(/^7 events wait/)
  backlog.check(() => 3)
})

it('lets a count that failed be, and counts again with the next unit of work', async () => {
  const countPending = vi.fn<() => Promise<number>>().mockRejectedValueOnce(new Error('away'))
  const backlog = new Backlog({ store: { countPending }, max: 10, recorder })
  await backlog.refresh()
  backlog.check(() => 10)
  countPending.mockResolvedValueOnce(10)
  await backlog.refresh()
  expect(() => backlog.check(() => 1)).toThrow(expect.objectContaining({ code: 'BACKLOG_FULL' }))
})

it('waits for another count before it would refuse, ten times a second at most', async () => {
  const countPending = vi.fn<() => Promise<number>>().mockResolvedValue(10)
  const backlog = new Backlog({ store: { countPending }, max: 10, recorder })
  for (; now < 250; now += 50) await backlog.refresh()
  expect(countPending).toHaveBeenCalledTimes(3)
  countPending.mockResolvedValueOnce(0)
  now = 3_600_000
  await backlog.refresh()
  backlog.check(() => 10)
})

it('makes room as events end in this process, without another count', async () => {
  const countPending = vi.fn(async () => 4)
  const backlog = new Backlog({ store: { countPending }, max: 10, recorder })
  recorder.endedCount = 100
  await backlog.refresh()
  backlog.saved(6)
  expect(() => backlog.check(() => 1)).toThrow(expect.objectContaining({ code: 'BACKLOG_FULL' }))
  recorder.endedCount += 3
  backlog.check(() => 3)
  expect(() => backlog.check(() => 4)).toThrow(/^7 events wait/)
  expect(countPending).toHaveBeenCalledOnce()
})
