import { expect, it } from 'vitest'
import { ClaimSize } from '../../src/claim-size.ts'
import { BATCH_CHARACTERS } from '../../src/delivery.ts'
import type { LeasedEvent } from '../../src/leases.ts'

const SEND_MS = 1_000

/** So many events of so many characters each. */
function claim(events: number, characters = 100): LeasedEvent[] {
  const leased = { event: { payload: 'x'.repeat(characters) } } as LeasedEvent
  return Array.from({ length: events }, () => leased)
}

it('doubles while claims come back full, up to the most that is allowed', () => {
  const size = new ClaimSize(900, SEND_MS)
  const sizes = [1, 2, 3, 4].map(() => {
    const { next } = size
    size.learn(claim(next), next, 1)
    return next
  })
  expect(sizes).toEqual([250, 500, 900, 900])
})

it('never begins with more than is allowed', () => {
  expect(new ClaimSize(10, SEND_MS).next).toBe(10)
})

it('stays as it is when a claim found less than it could take', () => {
  const size = new ClaimSize(1_000, SEND_MS)
  size.learn(claim(249), 250, 1)
  expect(size.next).toBe(250)
})

it('takes as many as make up a batch, by the weight of the last ones', () => {
  const size = new ClaimSize(1_000, SEND_MS)
  const weight = BATCH_CHARACTERS / 100
  size.learn(claim(250, weight), 250, 1)
  expect(size.next).toBe(100)
  size.learn(claim(100, weight / 2), 100, 1)
  expect(size.next).toBe(200)
})

it('shrinks after a heavy claim that was not full', () => {
  const size = new ClaimSize(1_000, SEND_MS)
  size.learn(claim(200, BATCH_CHARACTERS / 50), 250, 1)
  expect(size.next).toBe(50)
})

it('takes one at a time of what fills a batch alone', () => {
  const size = new ClaimSize(1_000, SEND_MS)
  size.learn(claim(2, BATCH_CHARACTERS), 250, 1)
  expect(size.next).toBe(1)
  size.learn(claim(1, BATCH_CHARACTERS * 2), 1, 1)
  expect(size.next).toBe(1)
})

it('takes as many as can be sent in time, by how long the last ones took', () => {
  const size = new ClaimSize(2_000, SEND_MS)
  size.learn(claim(500), 500, SEND_MS / 1.5)
  expect(size.next).toBe(750)
  size.learn(claim(700), 750, SEND_MS * 2)
  expect(size.next).toBe(350)
})

it('takes no fewer than the first time where each event takes long by itself', () => {
  const size = new ClaimSize(1_000, SEND_MS)
  size.learn(claim(250), 250, SEND_MS * 10)
  expect(size.next).toBe(250)
})

it('is not made smaller by the one event that probes whether a broker is back', () => {
  const size = new ClaimSize(1_000, SEND_MS)
  size.learn(claim(1), 1, 1)
  expect(size.next).toBe(250)
})
