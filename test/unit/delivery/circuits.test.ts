import { performance } from 'node:perf_hooks'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Circuits } from '../../src/circuit.ts'
import { Lifecycle } from '../../src/lifecycle.ts'
import { recordingLogger } from '../support/recording-logger.ts'

beforeEach(() => {
  vi.useFakeTimers()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const away = new Error('away')

function setUp() {
  const logger = recordingLogger()
  const lifecycle = new Lifecycle(logger)
  const onChance = vi.fn()
  const told: string[] = []
  for (const state of ['open', 'half-open', 'closed'] as const) {
    lifecycle.events.on(`circuit:${state}`, ({ topic }) => told.push(`${topic} ${state}`))
  }
  return { circuits: new Circuits('kafka', lifecycle, logger, onChance), onChance, told, logger }
}

it('sends nothing while the broker is away, then one probe at a time', () => {
  const { circuits, onChance, told } = setUp()
  circuits.failed(null, away)
  expect(circuits.accepts('a')).toBe(false)
  expect(circuits.claimable(100)).toBe(0)
  expect(onChance).not.toHaveBeenCalled()

  vi.advanceTimersByTime(500)
  expect(onChance).toHaveBeenCalledOnce()
  expect(circuits.claimable(100)).toBe(1)
  expect([circuits.admit('a'), circuits.admit('a'), circuits.admit('b')]).toEqual([
    true,
    false,
    false,
  ])
  expect(circuits.claimable(100)).toBe(0)

  circuits.succeeded('a')
  expect(onChance).toHaveBeenCalledTimes(2)
  expect(circuits.claimable(100)).toBe(100)
  expect(told).toEqual(['null open', 'null half-open', 'null closed'])
})

it('waits twice as long after each probe that fails, up to two seconds', () => {
  const { circuits, told } = setUp()
  circuits.failed(null, away)
  for (const ms of [500, 1_000, 2_000, 2_000]) {
    vi.advanceTimersByTime(ms - 1)
    expect(circuits.admit('a')).toBe(false)
    vi.advanceTimersByTime(1)
    expect(circuits.admit('a')).toBe(true)
    circuits.failed(null, away)
  }
  expect(told.filter((signal) => signal === 'null open')).toHaveLength(5)
})

it('does not put a probe off when sends that began earlier fail as well', () => {
  const { circuits } = setUp()
  circuits.failed(null, away)
  vi.advanceTimersByTime(499)
  circuits.failed(null, away)
  vi.advanceTimersByTime(1)
  expect(circuits.accepts('a')).toBe(true)
})

it('keeps the trouble of one topic to that topic', () => {
  const { circuits, told } = setUp()
  circuits.failed('a', away)
  expect([circuits.accepts('a'), circuits.accepts('b')]).toEqual([false, true])
  expect(circuits.unreachableTopics()).toEqual(['a'])
  expect(circuits.claimable(100)).toBe(100)

  vi.advanceTimersByTime(500)
  expect(circuits.unreachableTopics()).toEqual([])
  expect(circuits.admit('a')).toBe(true)
  expect(circuits.unreachableTopics()).toEqual(['a'])
  circuits.succeeded('b')
  expect(circuits.accepts('a')).toBe(false)
  circuits.succeeded('a')
  expect(circuits.accepts('a')).toBe(true)
  expect(told).toEqual(['a open', 'a half-open', 'a closed'])
})

it('offers another probe when one came back without a word on its destination', () => {
  const { circuits } = setUp()
  circuits.failed(null, away)
  circuits.failed('a', away)
  vi.advanceTimersByTime(500)
  expect(circuits.admit('a')).toBe(true)
  circuits.endProbes(['a'])
  expect(circuits.accepts('a')).toBe(false)
  vi.advanceTimersByTime(1_000)
  expect(circuits.accepts('a')).toBe(true)
})

it('forgets everything when it stops, and leaves no timer behind', () => {
  const { circuits } = setUp()
  circuits.failed(null, away)
  circuits.failed('a', away)
  circuits.stop()
  expect(vi.getTimerCount()).toBe(0)
  expect(circuits.accepts('a')).toBe(true)
})

it('tells the log when an outage begins, once a minute, and when it is over', () => {
  const { circuits, logger } = setUp()
  for (let second = 0; second < 130; second += 2) {
    circuits.failed('a', away)
    vi.advanceTimersByTime(2_000)
    circuits.admit('a')
  }
  circuits.succeeded('a')
  const fields = { err: away, topic: 'a' }
  expect(logger.lines).toMatchObject([
    { level: 'warn', fields, message: 'destination out of reach, circuit opened' },
    { level: 'warn', fields, message: 'destination still out of reach' },
    { level: 'warn', fields, message: 'destination still out of reach' },
    { level: 'info', fields: { topic: 'a' }, message: 'destination is back, circuit closed' },
  ])
})
