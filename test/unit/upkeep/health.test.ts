import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { Pause } from '../../../src/index.ts'
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

function open(paused: Pause[] = []) {
  const nothing = { count: 0, exact: true }
  const table = { pending: nothing, dead: nothing, published: nothing }
  const control = { pauses: async () => paused }
  const store = {
    stats: async () => table as never,
    countPending: async () => 0,
    takesWrites: async () => true,
    control,
  }
  const [delivery, unrouted] = [{ unreachable: () => [] }, { count: async () => ({}) }]
  const lifecycle = new Lifecycle(silentLogger)
  const health = new Health({
    store,
    delivery,
    unrouted,
    lifecycle,
    history: { learn: () => {} },
    deadLettersHold: false,
    findCdcProblems: null,
  })
  const poll = (durationMs: number, publisher = 'none') =>
    lifecycle.tell('poll:done', { publisher, claimed: 1, durationMs })
  return { health, poll }
}

it('forgets what was more than a minute ago', async () => {
  const { health, poll } = open()
  const polls = async () => (await health.stats()).lastMinute
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

it('is well again with the next round, after one that took too long', async () => {
  const { health, poll } = open()
  poll(6_000, 'kafka')
  poll(5, 'rabbitmq')
  expect(await health.health()).toMatchObject({
    ok: false,
    flags: [{ flag: 'poll', message: expect.stringMatching(/'kafka' took 6000ms/) as string }],
  })
  poll(5, 'kafka')
  expect(await health.health()).toMatchObject({ ok: true, flags: [] })
})

it('has what is paused among its numbers, and is well all the same', async () => {
  const pause = { topic: 'orders', since: new Date(0), by: 'Ada', reason: null }
  const { health } = open([pause])
  expect(await health.health()).toMatchObject({ ok: true, stats: { paused: [pause] } })
})
