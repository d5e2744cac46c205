import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Health } from '../../../src/upkeep/health.ts'
import { Lifecycle } from '../../../src/lifecycle.ts'
import { silentLogger } from '../../../src/runtime/logger.ts'

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
  const [delivery, unrouted] = [{ unreachable: () => [] }, { count: async () => ({}) }]
  const lifecycle = new Lifecycle(silentLogger)
  const health = new Health({ store, delivery, unrouted, lifecycle, deadLettersHold: false })
  const polls = async () => (await health.stats()).lastMinute
  const poll = (durationMs: number) =>
    lifecycle.tell('poll:done', { publisher: 'none', claimed: 1, durationMs })
  poll(7)
  now = 30_000
  poll(5)
  poll(3)
  expect(await polls()).toMatchObject({ polls: 3, longestPollMs: 7 })
  now = 61_000
  expect(await polls()).toMatchObject({ polls: 2, longestPollMs: 5 })
  now = 91_000
  poll(1)
  expect(await polls()).toMatchObject({ polls: 1, longestPollMs: 1 })
})
