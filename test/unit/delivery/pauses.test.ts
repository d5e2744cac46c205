import { expect, it, vi } from 'vitest'
import { Pauses } from '../../../src/delivery/pauses.ts'
import type { Pause } from '../../../src/index.ts'
import { Lifecycle } from '../../../src/lifecycle.ts'
import { Bell } from '../../../src/runtime/bell.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { defer } from '../../support/timing/deferred.ts'

const paused = (topic: string | null, by: string | null = null): Pause => {
  return { topic, since: new Date(0), by, reason: null }
}

function setUp() {
  const logger = recordingLogger()
  const [lifecycle, bell, rung] = [new Lifecycle(logger), new Bell(), vi.fn()]
  bell.onRing(rung)
  const told: string[] = []
  for (const name of ['topic:paused', 'topic:resumed'] as const) {
    lifecycle.events.on(name, ({ topic, by }) => told.push(`${name} ${topic} ${by}`))
  }
  const pauses = new Pauses({ lifecycle, logger, bell })
  const learn = (...known: Pause[]) => pauses.learn(async () => known)
  return { pauses, learn, told, rung, logger }
}

it('pauses the topics by name, or all of them', async () => {
  const { pauses, learn } = setUp()
  expect([pauses.areAny, pauses.isPaused('a')]).toEqual([false, false])
  await learn(paused('a'))
  expect([pauses.isPaused('a'), pauses.isPaused('b'), pauses.isEverything]).toEqual([
    true,
    false,
    false,
  ])
  await learn(paused('a'), paused(null))
  expect([pauses.isPaused('b'), pauses.isEverything]).toEqual([true, true])
  expect(pauses.topics).toEqual(['a'])
})

it('reports each pause once, and rings when one has ended', async () => {
  const { learn, told, rung, logger } = setUp()
  await learn(paused('a', 'Ada'))
  await learn(paused('a', 'Ada'), paused(null))
  expect(told.splice(0)).toEqual(['topic:paused a Ada', 'topic:paused null null'])
  expect(rung).not.toHaveBeenCalled()
  await learn(paused(null))
  expect(told).toEqual(['topic:resumed a Ada'])
  expect(rung).toHaveBeenCalledOnce()
  expect(logger.lines.map(({ level }) => level)).toEqual(['warn', 'warn', 'info'])
})

it('ignores a read that began before another one and ends after it', async () => {
  const { pauses, learn, told } = setUp()
  const slow = defer<Pause[]>()
  const learning = pauses.learn(() => slow.promise)
  await learn(paused('a'))
  slow.resolve([])
  await learning
  expect(pauses.isPaused('a')).toBe(true)
  expect(told).toEqual(['topic:paused a null'])
})

it('keeps what it knows when a read fails', async () => {
  const { pauses, learn } = setUp()
  await learn(paused('a'))
  await expect(pauses.learn(() => Promise.reject(new Error('away')))).rejects.toThrow('away')
  expect(pauses.isPaused('a')).toBe(true)
})
