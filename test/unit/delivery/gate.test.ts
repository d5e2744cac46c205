import { performance } from 'node:perf_hooks'
import { afterEach, expect, it, vi } from 'vitest'
import { Circuits } from '../../../src/delivery/circuits.ts'
import { Gate } from '../../../src/delivery/gate.ts'
import type { LeasedEvent } from '../../../src/delivery/leased-event.ts'
import { Leases } from '../../../src/delivery/leases.ts'
import { Pauses } from '../../../src/delivery/pauses.ts'
import { Lifecycle } from '../../../src/lifecycle.ts'
import { Bell } from '../../../src/runtime/bell.ts'
import { silentLogger } from '../../../src/runtime/logger.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'

const LEASE = 1_000
const away = new Error('away')
const leased = (topic: string, deadline = performance.now() + LEASE): LeasedEvent => {
  const event = outboxEvent({ topic })
  return { event, token: 'mine', path: 'immediate', committedAt: 0, deadline, outcome: null }
}

afterEach(() => {
  vi.useRealTimers()
})

function setUp(topics: { only: string[] | null; except: string[] } = { only: null, except: [] }) {
  vi.useFakeTimers()
  const logger = silentLogger
  const lifecycle = new Lifecycle(logger)
  const circuits = new Circuits({ publisher: 'none', lifecycle, logger, bell: new Bell() })
  const pauses = new Pauses({ lifecycle, logger, bell: new Bell() })
  const leases = new Leases({ renew: async () => new Map() }, LEASE)
  const gate = new Gate({ circuits, pauses, leases, topics, maxInFlight: 2 })
  const pause = (...paused: (string | null)[]) =>
    pauses.learn(async () => {
      return paused.map((topic) => ({ topic, since: new Date(0), by: null, reason: null }))
    })
  return { gate, circuits, leases, pause }
}

it('takes events for the immediate path only while it is open, has room and reaches them all', () => {
  const { gate, circuits, leases } = setUp()
  const [a, b] = [outboxEvent({ topic: 'a' }), outboxEvent({ topic: 'b' })]
  expect(gate.takes([a])).toBe(false)
  gate.startTaking()
  expect(gate.takes([a, b])).toBe(true)
  expect(gate.takes([a, b, a])).toBe(false)
  leases.take([leased('c')])
  expect([gate.takes([a]), gate.takes([a, b])]).toEqual([true, false])
  circuits.failed('a', away)
  expect([gate.takes([a]), gate.takes([b])]).toEqual([false, true])
  gate.stopTaking()
  expect(gate.takes([b])).toBe(false)
})

it('admits a send on a fresh lease to a destination in reach, and to one in trouble one probe', () => {
  const { gate, circuits } = setUp()
  expect(gate.admit(leased('a'))).toBe(true)
  expect(gate.admit(leased('a', performance.now() + LEASE / 2))).toBe(false)
  circuits.failed('a', away)
  expect(gate.admit(leased('a'))).toBe(false)
  vi.advanceTimersByTime(500)
  const stale = leased('a', performance.now() - 1)
  expect([gate.admit(stale), gate.admit(leased('a')), gate.admit(leased('a'))]).toEqual([
    false,
    true,
    false,
  ])
})

it('claims what is in reach, and of a topic in trouble one event when a probe is due', () => {
  const { gate, circuits } = setUp({ only: null, except: ['others'] })
  const all = { limit: 250, read: 250, isProbe: false, onlyTopics: null }
  expect(gate.claims(250)).toEqual([{ ...all, exceptTopics: ['others'] }])
  circuits.failed('a', away)
  expect(gate.claims(250)).toEqual([{ ...all, exceptTopics: ['others', 'a'] }])
  vi.advanceTimersByTime(500)
  expect(gate.claims(250)).toEqual([
    { ...all, exceptTopics: ['others', 'a'] },
    { limit: 1, read: 250, isProbe: true, onlyTopics: ['a'], exceptTopics: [] },
  ])
})

it('claims nothing while the broker is away, then a single probe, of any topic that is due one', () => {
  const { gate, circuits } = setUp({ only: ['a', 'b'], except: [] })
  circuits.failed(null, away)
  circuits.failed('a', away)
  expect(gate.claims(250)).toEqual([])
  vi.advanceTimersByTime(500)
  expect(gate.claims(250)).toEqual([
    { limit: 1, read: 250, isProbe: true, onlyTopics: ['a', 'b'], exceptTopics: [] },
  ])
})

it('takes, reaches and admits nothing of a paused topic, and all of it again when it is resumed', async () => {
  const { gate, pause } = setUp()
  const [a, b] = [outboxEvent({ topic: 'a' }), outboxEvent({ topic: 'b' })]
  const passes = () => [gate.takes([a]), gate.reachesAny([a]), gate.admit(leased('a'))]
  gate.startTaking()
  await pause('a')
  expect(passes()).toEqual([false, false, false])
  expect([gate.takes([b]), gate.reachesAny([a, b]), gate.admit(leased('b'))]).toEqual([
    true,
    true,
    true,
  ])
  await pause(null)
  expect([gate.takes([b]), gate.reachesAny([a, b]), gate.admit(leased('b'))]).toEqual([
    false,
    false,
    false,
  ])
  await pause()
  expect(passes()).toEqual([true, true, true])
})

it('takes a unit of which some events are paused, so that the others go out at once', async () => {
  const { gate, circuits, pause } = setUp()
  const [a, b] = [outboxEvent({ topic: 'a' }), outboxEvent({ topic: 'b' })]
  gate.startTaking()
  await pause('a')
  expect([gate.takes([a, b]), gate.takes([a, a])]).toEqual([true, false])
  circuits.failed('b', away)
  expect(gate.takes([a, b])).toBe(false)
})

it('claims nothing of a paused topic, not even a probe, and nothing at all when everything is paused', async () => {
  const { gate, circuits, pause } = setUp()
  const all = { limit: 250, read: 250, isProbe: false, onlyTopics: null }
  const probe = { limit: 1, read: 250, isProbe: true }
  circuits.failed('a', away)
  circuits.failed('b', away)
  vi.advanceTimersByTime(500)
  await pause('a', 'c')
  expect(gate.claims(250)).toEqual([
    { ...all, exceptTopics: ['a', 'c', 'a', 'b'] },
    { ...probe, onlyTopics: ['b'], exceptTopics: [] },
  ])
  circuits.failed(null, away)
  vi.advanceTimersByTime(500)
  expect(gate.claims(250)).toEqual([{ ...probe, onlyTopics: null, exceptTopics: ['a', 'c'] }])
  await pause('a', null)
  expect(gate.claims(250)).toEqual([])
})

it('leaves the probe of a paused topic for when it is resumed', async () => {
  const { gate, circuits, pause } = setUp()
  circuits.failed('a', away)
  vi.advanceTimersByTime(500)
  await pause('a')
  expect(gate.admit(leased('a'))).toBe(false)
  await pause()
  expect(gate.admit(leased('a'))).toBe(true)
})
