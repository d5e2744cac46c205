import { performance } from 'node:perf_hooks'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Circuits } from '../../../src/delivery/circuits.ts'
import { PublishError } from '../../../src/errors.ts'
import type { LeasedEvent } from '../../../src/delivery/leased-event.ts'
import { Bell } from '../../../src/runtime/bell.ts'
import { type Circuit, Lifecycle } from '../../../src/lifecycle.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'
import { acked, failedAs } from '../../support/doubles/scripted-publisher.ts'

beforeEach(() => {
  vi.useFakeTimers()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const away = new Error('away')

const leasedFor = (topic: string): LeasedEvent => ({
  event: outboxEvent({ topic }),
  token: 'mine',
  path: 'immediate',
  committedAt: null,
  deadline: 0,
  outcome: null,
})
const ALL = { broker: 'in reach', blockedTopics: [], halfOpenTopics: [], topicsToProbe: [] }

function setUp() {
  const logger = recordingLogger()
  const lifecycle = new Lifecycle(logger)
  const onChance = vi.fn()
  const told: string[] = []
  for (const state of ['open', 'half-open', 'closed'] as const) {
    lifecycle.events.on(`circuit:${state}`, (circuit: Circuit) => {
      told.push(`${circuit.topic} ${state}`)
    })
  }
  const bell = new Bell()
  bell.onRing(onChance)
  const circuits = new Circuits({ publisher: 'kafka', lifecycle, logger, bell })
  return { circuits, onChance, told, logger }
}

it('sends nothing while the broker is away, then one probe at a time', () => {
  const { circuits, onChance, told } = setUp()
  circuits.failed(null, away)
  expect(circuits.isPassable('a')).toBe(false)
  expect(circuits.claimable()).toMatchObject({ broker: 'out of reach' })
  expect(onChance).not.toHaveBeenCalled()

  vi.advanceTimersByTime(500)
  expect(onChance).toHaveBeenCalledOnce()
  expect(circuits.claimable()).toMatchObject({ broker: 'to probe' })
  expect([circuits.admit('a'), circuits.admit('a'), circuits.admit('b')]).toEqual([
    true,
    false,
    false,
  ])
  expect(circuits.claimable()).toMatchObject({ broker: 'out of reach' })

  circuits.succeeded('a')
  expect(onChance).toHaveBeenCalledTimes(2)
  expect(circuits.claimable()).toEqual(ALL)
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
  expect(circuits.isPassable('a')).toBe(true)
})

it('keeps the trouble of one topic to that topic', () => {
  const { circuits, told } = setUp()
  circuits.failed('a', away)
  expect([circuits.isPassable('a'), circuits.isPassable('b')]).toEqual([false, true])
  expect(circuits.claimable()).toEqual({ ...ALL, blockedTopics: ['a'] })

  vi.advanceTimersByTime(500)
  expect(circuits.claimable()).toEqual({ ...ALL, halfOpenTopics: ['a'], topicsToProbe: ['a'] })
  expect(circuits.admit('a')).toBe(true)
  expect(circuits.claimable()).toEqual({ ...ALL, blockedTopics: ['a'] })
  circuits.succeeded('b')
  expect(circuits.isPassable('a')).toBe(false)
  circuits.succeeded('a')
  expect(circuits.isPassable('a')).toBe(true)
  expect(told).toEqual(['a open', 'a half-open', 'a closed'])
})

it('looks for a probe no more often than one could go out, and takes one at once all the while', () => {
  const { circuits, onChance } = setUp()
  circuits.failed('a', away)
  vi.advanceTimersByTime(500)
  circuits.noProbeFor('a')
  expect(circuits.claimable()).toEqual({ ...ALL, halfOpenTopics: ['a'] })
  expect(circuits.isPassable('a')).toBe(true)
  onChance.mockClear()
  vi.advanceTimersByTime(499)
  expect(onChance).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(onChance).toHaveBeenCalledOnce()
  expect(circuits.claimable()).toMatchObject({ topicsToProbe: ['a'] })
})

it('offers another probe when one came back without a word on its destination', () => {
  const { circuits } = setUp()
  circuits.failed(null, away)
  circuits.failed('a', away)
  vi.advanceTimersByTime(500)
  expect(circuits.admit('a')).toBe(true)
  circuits.endProbes(['a'])
  expect(circuits.isPassable('a')).toBe(false)
  vi.advanceTimersByTime(1_000)
  expect(circuits.isPassable('a')).toBe(true)
})

it('blames the topics alone when the broker was heard from in the same batch', () => {
  const { circuits, told } = setUp()
  const batch = ['a', 'b'].map((topic) => leasedFor(topic))
  circuits.learn(batch, [failedAs('transient', 'topic'), failedAs('transient', 'broker')], 0)
  expect(told).toEqual(['a open', 'b open'])
  expect(circuits.unreachable().map(({ topic }) => topic)).toEqual(['a', 'b'])
})

it('blames the topics of a send that got no answer alone while the broker answers other sends', () => {
  const { circuits, told } = setUp()
  const begunAt = performance.now()
  vi.advanceTimersByTime(9_000)
  const answered = leasedFor('b')
  circuits.learn([answered], [acked(answered.event)], performance.now())
  vi.advanceTimersByTime(1_000)
  circuits.noAnswer([leasedFor('a')], away, begunAt)
  circuits.learn([leasedFor('c')], [failedAs('transient', 'broker')], begunAt)
  expect(told).toEqual(['a open', 'c open'])
})

it('blames the broker for a send that got no answer if its last answer was long ago', () => {
  const { circuits, told } = setUp()
  const begunAt = performance.now()
  vi.advanceTimersByTime(1_000)
  const answered = leasedFor('b')
  circuits.learn([answered], [acked(answered.event)], performance.now())
  vi.advanceTimersByTime(9_000)
  circuits.noAnswer([leasedFor('a')], away, begunAt)
  expect(told).toEqual(['null open'])
})

it('says what a send that was given up failed with, once that is known', () => {
  const { circuits, told } = setUp()
  const batch = [leasedFor('a')]
  circuits.noAnswer(batch, new Error('too long'), 0)
  circuits.learn(batch, [failedAs('transient', 'broker')], 0)
  circuits.noAnswer(batch, new Error('too long'), 0)
  expect(circuits.unreachable()).toMatchObject([
    { topic: null, error: { message: 'the test says transient' } },
  ])
  expect(told).toEqual(['null open'])
})

it('forgets a topic for which there has been no event for a minute', () => {
  const { circuits, told } = setUp()
  circuits.failed('a', away)
  for (let n = 0; n < 200; n += 1) {
    vi.advanceTimersByTime(500)
    circuits.noProbeFor('a')
  }
  expect(told).toEqual(['a open', 'a half-open', 'a closed'])
  expect(circuits.claimable()).toEqual(ALL)
  expect(vi.getTimerCount()).toBe(0)
})

it('forgets everything when it stops, and leaves no timer behind', () => {
  const { circuits } = setUp()
  circuits.failed(null, away)
  circuits.failed('a', away)
  circuits.stop()
  expect(vi.getTimerCount()).toBe(0)
  expect(circuits.isPassable('a')).toBe(true)
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
    { level: 'warn', fields, message: 'sends to a destination fail, circuit opened' },
    { level: 'warn', fields, message: 'sends to a destination still fail' },
    { level: 'warn', fields, message: 'sends to a destination still fail' },
    {
      level: 'info',
      fields: { topic: 'a' },
      message: 'sends to a destination work again, circuit closed',
    },
  ])
})

describe.each(['PAYLOAD_READ_FAILED', 'SERIALIZER_FAILED'] as const)('after %s', (code) => {
  const error = new PublishError(code, 'cannot be made')
  const dead = { ok: false, kind: 'permanent', error } as const
  const waits = { ok: false, kind: 'transient', error, blames: 'topic' } as const

  it.each([
    ['dies', dead, []],
    ['waits', waits, ['a open']],
  ])('leaves the probe to another event when its own %s: nothing was sent', (_, result, more) => {
    const { circuits, told, onChance } = setUp()
    circuits.failed(null, away)
    vi.advanceTimersByTime(500)
    expect(circuits.admit('a')).toBe(true)
    onChance.mockClear()
    circuits.learn([leasedFor('a')], [result], performance.now())
    expect(told).toEqual(['null open', 'null half-open', ...more])
    expect(onChance).toHaveBeenCalled()
    expect(circuits.admit('b')).toBe(true)
    expect(circuits.admit('b')).toBe(false)
  })

  it('still counts the ack of another event of its topic as a response', () => {
    const { circuits, told } = setUp()
    const batch = [leasedFor('a'), leasedFor('a'), leasedFor('b')]
    const results = [acked(batch[0]!.event), waits, failedAs('transient')]
    circuits.learn(batch, results, performance.now())
    expect(told).toEqual(['a open', 'b open'])
  })
})
