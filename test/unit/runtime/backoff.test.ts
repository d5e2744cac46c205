import { expect, it } from 'vitest'
import { backoffMs } from '../../../src/runtime/backoff.ts'

const options = { backoffBaseMs: 30_000, backoffMaxMs: 1_800_000 }

it('doubles with each attempt up to the maximum', () => {
  const waits = [1, 2, 3, 6, 7, 50].map((attempt) => backoffMs(attempt, options, () => 0))
  expect(waits).toEqual([30_000, 60_000, 120_000, 960_000, 1_800_000, 1_800_000])
})

it('adds a jitter of up to the base', () => {
  expect(backoffMs(1, options, () => 0.5)).toBe(45_000)
  expect(backoffMs(50, options, () => 1)).toBe(1_830_000)
})

it('stays a number after any number of attempts, also without a base', () => {
  const waits = [1, 1_025, 1_000_000].map((attempt) =>
    backoffMs(attempt, { backoffBaseMs: 0, backoffMaxMs: 1_000 }, () => 1),
  )
  expect(waits).toEqual([0, 0, 0])
})
