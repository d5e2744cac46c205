import { expect, it } from 'vitest'
import { BATCH_CHARACTERS, ClaimSize } from '../../../src/delivery/claim-size.ts'
import type { LeasedEvent } from '../../../src/delivery/leased-event.ts'

const UNSAID = { batchSize: null }

/** So many events of so many characters each. */
function claim(events: number, characters = 100): LeasedEvent[] {
  const leased = { event: { payload: 'x'.repeat(characters) } } as LeasedEvent
  return Array.from({ length: events }, () => leased)
}

/** One that has grown to 1,000. */
function grown(): ClaimSize {
  const size = new ClaimSize(UNSAID, { batchSize: 1_000 })
  for (const events of [250, 500]) size.learn(claim(events))
  return size
}

it('doubles while claims come back full, up to what the publisher likes', () => {
  const size = new ClaimSize(UNSAID, { batchSize: 900 })
  const sizes = [1, 2, 3, 4].map(() => {
    const { next } = size
    size.learn(claim(next))
    return next
  })
  expect(sizes).toEqual([250, 500, 900, 900])
})

it.each([
  { publisher: {}, always: 250 },
  { publisher: { batchSize: 10 }, always: 10 },
])('does not grow beyond what the publisher likes: $always', ({ publisher, always }) => {
  const size = new ClaimSize(UNSAID, publisher)
  expect(size.next).toBe(always)
  size.learn(claim(always))
  expect(size.next).toBe(always)
})

it('is what batchSize says, from the first claim on, whatever the publisher likes', () => {
  const size = new ClaimSize({ batchSize: 3_000 }, { batchSize: 1_000 })
  expect(size.next).toBe(3_000)
  size.learn(claim(3_000))
  expect(size.next).toBe(3_000)
})

it.each([1, 249])('stays as it is when a claim found only %i', (found) => {
  const size = new ClaimSize(UNSAID, { batchSize: 1_000 })
  size.learn(claim(found))
  expect(size.next).toBe(250)
})

it('is as many as make up a batch, by the weight of the last ones', () => {
  const size = grown()
  size.learn(claim(1_000, BATCH_CHARACTERS / 100))
  expect(size.next).toBe(100)
  size.learn(claim(100, BATCH_CHARACTERS / 150))
  expect(size.next).toBe(150)
  size.learn(claim(20, BATCH_CHARACTERS / 10))
  expect(size.next).toBe(10)
})

it('is one at least', () => {
  const size = grown()
  size.learn(claim(2, BATCH_CHARACTERS * 2))
  expect(size.next).toBe(1)
  size.halve()
  expect(size.next).toBe(1)
})

it('is not made large again by a claim that was under way when it was made small', () => {
  const size = grown()
  size.learn(claim(1_000, BATCH_CHARACTERS / 8))
  size.learn(claim(1_000))
  expect(size.next).toBe(16)
})

it('knows nothing of what comes next when nothing is left', () => {
  const size = grown()
  size.reset()
  expect(size.next).toBe(250)
})

it('goes by the weight of a single straggler too', () => {
  const size = grown()
  size.learn(claim(1, BATCH_CHARACTERS / 4))
  expect(size.next).toBe(4)
})

it('is half after a claim that took too long, and grows again', () => {
  const size = new ClaimSize({ batchSize: 100 }, {})
  size.halve()
  expect(size.next).toBe(50)
  size.learn(claim(50))
  expect(size.next).toBe(100)
})
