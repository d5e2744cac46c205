import { describe, expect, it } from 'vitest'
import {
  keepsOthersBack,
  mayFollow,
  SafeToFollow,
  splitInOrder,
} from '../../../src/delivery/order.ts'

describe('mayFollow()', () => {
  it('lets an event go that has nothing to follow', () => {
    expect(mayFollow([], () => false)).toBe(true)
  })

  it('wants every event that was there on its way, not only the last of them', () => {
    expect(mayFollow([1, 2], (seq) => seq === 2)).toBe(false)
    expect(mayFollow([1, 2], () => true)).toBe(true)
  })

  it('lets nothing go behind what is unknown', () => {
    expect(mayFollow('unknown', () => true)).toBe(false)
  })
})

describe('SafeToFollow', () => {
  it('knows what is queued until it is removed', () => {
    const safeToFollow = new SafeToFollow()
    safeToFollow.queue(1)
    expect(safeToFollow.letsFollow([1])).toBe(true)
    safeToFollow.remove(1)
    expect(safeToFollow.letsFollow([1])).toBe(false)
  })

  it('remembers an ack through one interval at least, and not for ever', () => {
    const safeToFollow = new SafeToFollow()
    safeToFollow.queue(1)
    safeToFollow.acknowledge(1)
    safeToFollow.forgetOldAcks()
    expect(safeToFollow.letsFollow([1])).toBe(true)
    safeToFollow.forgetOldAcks()
    expect(safeToFollow.letsFollow([1])).toBe(false)
  })

  it('remembers no more acks than it has room for', () => {
    const safeToFollow = new SafeToFollow()
    for (let seq = 0; seq < 120_000; seq += 1) safeToFollow.acknowledge(seq)
    expect([0, 49_999, 50_000, 119_999].map((seq) => safeToFollow.letsFollow([seq]))).toEqual([
      false,
      false,
      true,
      true,
    ])
  })

  it('does not forget what waits, however long', () => {
    const safeToFollow = new SafeToFollow()
    safeToFollow.queue(1)
    for (let n = 0; n < 3; n += 1) safeToFollow.forgetOldAcks()
    expect(safeToFollow.letsFollow([1])).toBe(true)
  })
})

it('leaves everything behind an item that was left, in its lane and in no other', () => {
  const items = ['a1', 'b1', 'a2', 'b2']
  const { taken, left } = splitInOrder(
    items,
    (item) => item[0]!,
    (item) => item !== 'a1',
  )
  expect([taken, left]).toEqual([
    ['b1', 'b2'],
    ['a1', 'a2'],
  ])
})

it('keeps others back behind all that did not go out, and behind dead letters if those hold', () => {
  const kinds = ['published', 'failed', 'untried', 'unknown', 'dead'] as const
  expect(kinds.map((kind) => keepsOthersBack(kind, false))).toEqual([
    false,
    true,
    true,
    true,
    false,
  ])
  expect(kinds.map((kind) => keepsOthersBack(kind, true))).toEqual([false, true, true, true, true])
})
