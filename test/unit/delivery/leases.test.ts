import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { LeasedEvent } from '../../../src/delivery/leased-event.ts'
import { Leases } from '../../../src/delivery/leases.ts'
import type { LeaseRef } from '../../../src/store/outbox/outbox-store.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'

const LEASE = 1_000
let now = 0
beforeEach(() => {
  now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
})
afterEach(() => {
  vi.restoreAllMocks()
})

function setUp() {
  const asked: string[][] = []
  const lost = new Set<string>()
  const renew = async (refs: readonly LeaseRef[]) => {
    asked.push(refs.map(({ id }) => id))
    // The statement takes its time.
    now += 100
    const kept = refs.filter(({ id, token }) => !lost.has(id) && token === 'mine')
    return new Map(kept.map(({ id, token }) => [id, token]))
  }
  return { leases: new Leases({ renew }, LEASE), asked, lost }
}

const leased = (deadline: number): LeasedEvent => {
  const event = outboxEvent()
  return { event, token: 'mine', path: 'fallback', committedAt: null, deadline, outcome: null }
}

it('lets a send begin only on more than half of a lease', () => {
  const { leases } = setUp()
  expect([501, 500, 0, -1].map((deadline) => leases.isFresh(leased(deadline)))).toEqual([
    true,
    false,
    false,
    false,
  ])
})

it('counts a renewed lease from before the statement left, so that it ends before the one stored', async () => {
  const { leases } = setUp()
  const one = leased(LEASE)
  leases.take([one])
  now = 300
  await leases.renewOnce()
  expect(one.deadline).toBe(300 + LEASE)
})

it('asks only for what has aged, and for nothing when nothing has', async () => {
  const { leases, asked } = setUp()
  const [young, old] = [leased(LEASE + 200), leased(LEASE)]
  leases.take([young, old])
  now = 260
  await leases.renewOnce()
  expect(asked).toEqual([[old.event.id]])
  now = 261
  await leases.renewOnce()
  expect(asked).toHaveLength(1)
})

it('leaves the deadline of a lease that was lost as it is', async () => {
  const { leases, lost } = setUp()
  const [kept, stolen] = [leased(LEASE), leased(LEASE)]
  lost.add(stolen.event.id)
  leases.take([kept, stolen])
  now = 300
  await leases.renewOnce()
  expect([kept.deadline, stolen.deadline]).toEqual([1_300, LEASE])
})

it('does not take the renewal of a row that it has claimed anew for one of the lease that it lost', async () => {
  const { leases } = setUp()
  const claimed = leased(LEASE)
  const stale: LeasedEvent = { ...claimed, token: 'lost' }
  leases.take([stale, claimed])
  now = 600
  await leases.renewOnce()
  expect([stale, claimed].map((one) => leases.isFresh(one))).toEqual([false, true])
})

it('renews nothing that was let go', async () => {
  const { leases, asked } = setUp()
  const one = leased(LEASE)
  leases.take([one])
  leases.drop([one])
  expect(leases.size).toBe(0)
  now = 900
  await leases.renewOnce()
  expect(asked).toEqual([])
})
