import { readFile } from 'node:fs/promises'
import { performance } from 'node:perf_hooks'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Pauses } from '../../../src/delivery/pauses.ts'
import type { Pause } from '../../../src/index.ts'
import { Lifecycle } from '../../../src/lifecycle.ts'
import { resolveOptions } from '../../../src/options/options.ts'
import { routerPublisher } from '../../../src/publishers/router.ts'
import { backgroundLoops } from '../../../src/runtime/background.ts'
import { Bell } from '../../../src/runtime/bell.ts'
import { silentLogger } from '../../../src/runtime/logger.ts'
import type {
  InstanceHistory,
  InstanceReport,
  OwnInstance,
} from '../../../src/store/outbox/control-store.ts'
import { History } from '../../../src/upkeep/history.ts'
import { Presence } from '../../../src/upkeep/presence.ts'
import { acked, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'

beforeEach(() => {
  vi.useFakeTimers()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const ORDERS: Pause = { topic: 'orders', since: new Date(0), by: null, reason: null }

const NOTHING_DONE: InstanceReport = {
  inFlight: 0,
  circuits: [],
  published: { immediate: 0, fallback: 0 },
  failed: 0,
  dead: 0,
  duplicates: 0,
  latency: [],
}

/** A database that answers after `takesMs`, or is away. */
function setUp() {
  const database = { paused: [ORDERS], isAway: false, takesMs: 0 }
  const beats: OwnInstance[] = []
  const histories: (InstanceHistory | null)[] = []
  const left: string[] = []
  const control = {
    async beat(self: OwnInstance, history: InstanceHistory | null) {
      beats.push(self)
      histories.push(history)
      if (database.takesMs > 0) {
        await new Promise((resolve) => setTimeout(resolve, database.takesMs))
      }
      if (database.isAway) throw new Error('away')
      return database.paused
    },
    pauses: async () => database.paused,
    leave: async (id: string) => void left.push(id),
  }
  const one = () => scriptedPublisher(acked)
  const options = resolveOptions({
    db: { execute: async () => [], transaction: async () => {} },
    publisher: routerPublisher({
      publishers: { kafka: one(), rabbit: one() },
      routes: { orders: 'kafka' },
      otherwise: 'rabbit',
    }),
    threshold: '9s',
    workerId: 'mine',
    poller: false,
    logger: silentLogger,
  })
  const lifecycle = new Lifecycle(silentLogger)
  const pauses = new Pauses({ lifecycle, logger: silentLogger, bell: new Bell() })
  const newLoop = backgroundLoops(silentLogger)
  const report = () => ({ ...NOTHING_DONE, failed: beats.length })
  const presence = new Presence({
    control,
    options,
    pauses,
    reporter: { report },
    history: new History(lifecycle),
    lifecycle,
    newLoop,
  })
  return { presence, pauses, lifecycle, database, beats, histories, left }
}

it('knows the pauses when it has entered, and beats no more than once in ten seconds', async () => {
  const { presence, pauses, beats, left } = setUp()
  await presence.enter()
  expect(pauses.isPaused('orders')).toBe(true)
  expect(beats).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(100_000)
  expect(beats).toHaveLength(11)
  expect(beats.map(({ report }) => report.failed)).toEqual([...beats.keys()])
  await presence.leave()
  await vi.advanceTimersByTimeAsync(100_000)
  expect(beats).toHaveLength(11)
  expect(left).toEqual([beats[0]!.id])
})

it('describes itself: where it runs, what it publishes, and the settings that all must share', async () => {
  const { presence, beats } = setUp()
  await presence.enter()
  await vi.advanceTimersByTimeAsync(10_000)
  await presence.leave()
  const file = await readFile(new URL('../../../package.json', import.meta.url), 'utf8')
  const { version } = JSON.parse(file) as { version: string }
  expect(beats[1]).toEqual({
    id: beats[0]!.id,
    workerId: 'mine',
    host: expect.any(String) as string,
    pid: process.pid,
    version,
    upMs: 10_000,
    publishers: [
      { name: 'kafka', topics: ['orders'] },
      { name: 'rabbit', topics: null },
    ],
    immediate: true,
    poller: false,
    settings: {
      relay: 'outbox',
      order: 'aggregate',
      onDeadLetter: 'continue',
      lockKeys: false,
      retention: 7 * 86_400_000,
      deadLetterTopic: null,
      payloads: null,
      threshold: 9_000,
      cleanup: true,
    },
    report: { ...NOTHING_DONE, failed: 1 },
  })
})

it('obeys the last known pauses while the database is away, and goes on trying', async () => {
  const { presence, pauses, database, beats } = setUp()
  await presence.enter()
  database.isAway = true
  database.paused = []
  await vi.advanceTimersByTimeAsync(60_000)
  expect(pauses.isPaused('orders')).toBe(true)
  expect(beats.length).toBeGreaterThan(10)
  database.isAway = false
  await vi.advanceTimersByTimeAsync(5_000)
  expect(pauses.isPaused('orders')).toBe(false)
  await presence.leave()
})

it('begins a beat every ten seconds, however long one takes', async () => {
  const { presence, database, beats } = setUp()
  await presence.enter()
  database.takesMs = 3_000
  await vi.advanceTimersByTimeAsync(30_000)
  expect(beats).toHaveLength(4)
  database.takesMs = 0
  await vi.advanceTimersByTimeAsync(3_000)
  await presence.leave()
})

it('beats within a second of a circuit that opens or closes, once for all of them', async () => {
  const { presence, lifecycle, beats } = setUp()
  await presence.enter()
  const orders = { publisher: 'kafka', topic: 'orders' }
  const error = new Error('away')
  lifecycle.tell('circuit:open', { ...orders, error })
  lifecycle.tell('circuit:open', { ...orders, topic: 'payments', error })
  await vi.advanceTimersByTimeAsync(1_000)
  expect(beats).toHaveLength(2)
  // A probe failed: no news.
  lifecycle.tell('circuit:open', { ...orders, error })
  await vi.advanceTimersByTimeAsync(9_999)
  expect(beats).toHaveLength(2)
  await vi.advanceTimersByTimeAsync(1)
  expect(beats).toHaveLength(3)
  lifecycle.tell('circuit:closed', orders)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(beats).toHaveLength(4)
  await vi.advanceTimersByTimeAsync(9_999)
  expect(beats).toHaveLength(4)
  await presence.leave()
})

it('beats no more than twice in ten seconds while a circuit opens and closes', async () => {
  const { presence, lifecycle, beats } = setUp()
  await presence.enter()
  const orders = { publisher: 'kafka', topic: 'orders' }
  for (let second = 0; second < 100; second += 1) {
    lifecycle.tell('circuit:open', { ...orders, error: new Error('away') })
    await vi.advanceTimersByTimeAsync(500)
    lifecycle.tell('circuit:closed', orders)
    await vi.advanceTimersByTimeAsync(500)
  }
  expect(beats.length).toBeLessThanOrEqual(21)
  // The first change is news at once, and so is one after a calm time.
  await vi.advanceTimersByTimeAsync(15_000)
  const before = beats.length
  lifecycle.tell('circuit:open', { ...orders, error: new Error('away') })
  await vi.advanceTimersByTimeAsync(1_000)
  expect(beats).toHaveLength(before + 1)
  await presence.leave()
})

it('is not there if its first beat fails, and is a new instance with each start', async () => {
  const { presence, database, beats, left } = setUp()
  database.isAway = true
  await expect(presence.enter()).rejects.toThrow('away')
  await vi.advanceTimersByTimeAsync(20_000)
  await presence.leave()
  expect([beats.length, left]).toEqual([1, []])
  database.isAway = false
  await presence.enter()
  await presence.leave()
  expect(left).toEqual([beats[1]!.id])
  expect(beats[1]!.id).not.toBe(beats[0]!.id)
})

it('reads the pauses only where no beat does', async () => {
  const { presence, pauses, database } = setUp()
  await presence.readPauses()
  expect(pauses.isPaused('orders')).toBe(true)
  await presence.enter()
  database.paused = []
  await presence.readPauses()
  expect(pauses.isPaused('orders')).toBe(true)
  await presence.leave()
})

it('writes what it did once a minute, again after a beat that failed, and anew with each start', async () => {
  const { presence, database, histories } = setUp()
  await presence.enter()
  await vi.advanceTimersByTimeAsync(125_000)
  expect(histories.map((history) => history?.minutes.length ?? null)).toEqual([
    ...Array<null>(6).fill(null),
    1,
    ...Array<null>(5).fill(null),
    2,
  ])
  database.isAway = true
  await vi.advanceTimersByTimeAsync(60_000)
  database.isAway = false
  await vi.advanceTimersByTimeAsync(5_000)
  expect(histories.at(-1)?.minutes).toHaveLength(3)
  await presence.leave()
  histories.length = 0
  await presence.enter()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(histories.at(-1)?.minutes).toHaveLength(1)
  await presence.leave()
})
