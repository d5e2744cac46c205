import { performance } from 'node:perf_hooks'
import { afterEach, expect, it, vi } from 'vitest'
import { Circuits } from '../../../src/delivery/circuits.ts'
import { Gate } from '../../../src/delivery/gate.ts'
import type { LeasedEvent } from '../../../src/delivery/leased-event.ts'
import { Leases } from '../../../src/delivery/leases.ts'
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
  const leases = new Leases({ renew: async () => new Map() }, LEASE)
  return { gate: new Gate({ circuits, leases, topics, maxInFlight: 2 }), circuits, leases }
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
