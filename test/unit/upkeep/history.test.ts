import { performance } from 'node:perf_hooks'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { EventRef } from '../../../src/event/event.ts'
import { Lifecycle, type Path } from '../../../src/lifecycle.ts'
import { silentLogger } from '../../../src/runtime/logger.ts'
import type { InstanceHistory } from '../../../src/store/outbox/control-store.ts'
import { History } from '../../../src/upkeep/history.ts'

const clock = { now: 0 }
beforeEach(() => {
  clock.now = 1_000
  vi.spyOn(performance, 'now').mockImplementation(() => clock.now)
})
afterEach(() => vi.restoreAllMocks())

function setUp() {
  const lifecycle = new Lifecycle(silentLogger)
  const history = new History(lifecycle)
  const publish = (topic: string, path: Path = 'immediate', latencyMs: number | null = 4) =>
    lifecycle.tell('event:published', {
      event: { id: '1', topic } as EventRef,
      path,
      latencyMs,
      topic,
      key: '1',
      partition: null,
      offset: null,
    })
  const fail = (topic: string, isDead = false) => {
    const event = { id: '1', topic } as EventRef
    const error = new Error('no')
    if (isDead) lifecycle.tell('event:dead', { event, error, attempts: 1 })
    else {
      lifecycle.tell('event:failed', {
        event,
        lane: 1,
        path: 'fallback',
        error,
        attempts: 1,
        retryInMs: 1,
      })
    }
  }
  const pass = (ms: number) => void (clock.now += ms)
  return { history, publish, fail, pass }
}

const exact = (count: number) => ({ count, exact: true })

it('keeps for each minute what was sent by each path, what failed, how long it took, and the table', () => {
  const { history, publish, fail, pass } = setUp()
  publish('orders')
  publish('orders', 'fallback', null)
  publish('payments', 'immediate', 40)
  fail('orders')
  fail('payments', true)
  history.learn({ pending: exact(7), dead: exact(2), lagMs: 1_234.5 })
  pass(60_000)
  publish('payments', 'immediate', 4)
  pass(61_000)
  expect(history.unwritten()).toEqual({
    topics: ['orders', 'payments'],
    lastBeganMsAgo: 61_000,
    minutes: [
      {
        sent: [
          [0, 1, 1, 1],
          [1, 1, 0, 1],
        ],
        took: [2, 1, 5, 1],
        table: [7, 1_235, 2],
      },
      { sent: [[1, 1, 0, 0]], took: [2, 1] },
    ],
  } satisfies InstanceHistory)
})

it('has something to write once a minute, and until it was written', () => {
  const { history, pass } = setUp()
  expect(history.unwritten()).toBeNull()
  pass(60_000)
  expect(history.unwritten()?.minutes).toEqual([0])
  expect(history.unwritten()?.minutes).toEqual([0])
  history.written()
  expect(history.unwritten()).toBeNull()
  pass(60_000)
  expect(history.unwritten()?.minutes).toEqual([0, 0])
})

it('ends with the minute that has not passed', () => {
  const { history, publish, pass } = setUp()
  pass(60_000)
  publish('orders')
  pass(15_000)
  expect(history.atEnd()).toEqual({
    topics: ['orders'],
    lastBeganMsAgo: 15_000,
    minutes: [0, { sent: [[0, 1, 0, 0]], took: [2, 1] }],
  })
})

it('keeps three hours, also of a process that was frozen for longer', () => {
  const { history, publish, pass } = setUp()
  publish('orders')
  pass(60_000)
  publish('payments')
  pass(179 * 60_000)
  expect(history.unwritten()!.minutes).toHaveLength(180)
  expect(history.unwritten()!.minutes[0]).not.toBe(0)
  pass(60_000)
  expect(history.unwritten()!.minutes[0]).toMatchObject({ sent: [[1, 1, 0, 0]] })
  pass(1_000 * 60_000)
  expect(history.unwritten()).toMatchObject({ minutes: Array<0>(180).fill(0) })
})

it('begins anew', () => {
  const { history, publish, pass } = setUp()
  publish('orders')
  pass(90_000)
  history.begin()
  expect(history.unwritten()).toBeNull()
  expect(history.atEnd()).toEqual({ topics: [], lastBeganMsAgo: 0, minutes: [0] })
})

it('is bounded: it tells the first twelve topics apart, and has no more than 75 kB', () => {
  const { history, publish, pass } = setUp()
  const lifecycle = Array.from({ length: 15 }, (_, n) => `topic-${n}`)
  for (let minute = 0; minute < 200; minute += 1) {
    for (const topic of lifecycle) {
      for (const latencyMs of [
        0.5, 2, 4, 7, 20, 40, 70, 200, 400, 800, 2_000, 4_000, 8_000, 40_000,
      ])
        publish(topic, 'immediate', latencyMs)
      publish(topic, 'fallback', null)
    }
    history.learn({ pending: exact(100_000), dead: exact(100_000), lagMs: 1e7 })
    pass(60_000)
  }
  const written = history.unwritten()!
  expect(written.topics).toHaveLength(12)
  const [minute] = written.minutes
  expect(minute).toMatchObject({ sent: expect.arrayContaining([[-1, 42, 3, 0]]) as never })
  // With the counts of 100,000 events a second in all of them.
  const inBusyMinutes = JSON.stringify(written, (_, value: unknown) =>
    typeof value === 'number' && value > 13 && value < 100_000 ? 500_000 : value,
  )
  expect(inBusyMinutes.length).toBeLessThan(75_000)
  expect(inBusyMinutes.length).toBeGreaterThan(40_000)
})
