import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Health } from '../../src/health.ts'
import { Lifecycle } from '../../src/lifecycle.ts'
import { silentLogger } from '../../src/logger.ts'

let now = 0
beforeEach(() => {
  now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
})
afterEach(() => {
  vi.restoreAllMocks()
})

it('forgets what was more than a minute ago', async () => {
  const store = { stats: async () => ({}) as never, countPending: async () => 0 }
  const [circuits, unrouted] = [{ unreachable: () => [] }, { count: async () => ({}) }]
  const health = new Health(store, circuits, unrouted, new Lifecycle(silentLogger), false)
  const polls = async () => (await health.stats()).lastMinute
  const poll = (ms: number) =>
    health.watchPoll(async () => {
      now += ms
      return { claimed: 1, isFull: false }
    })
  await poll(7)
  now = 30_000
  await poll(5)
  await poll(3)
  expect(await polls()).toMatchObject({ polls: 3, longestPollMs: 7 })
  now = 61_000
  expect(await polls()).toMatchObject({ polls: 2, longestPollMs: 5 })
  now = 91_000
  await poll(1)
  expect(await polls()).toMatchObject({ polls: 1, longestPollMs: 1 })
})
