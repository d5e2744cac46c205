import { expect, it } from 'vitest'
import { CpuTally } from '../../../bench/server-cost.ts'

it('counts what each backend used, also of those that came later or have ended', () => {
  const tally = new CpuTally(new Map([[1, 5_000]]))
  tally.note(
    new Map([
      [1, 6_000],
      [2, 3_000],
    ]),
  )
  tally.note(new Map([[1, 9_000]]))
  expect(tally.microseconds).toBe(4 + 3)
})

it('counts nothing for a backend that ended before it was seen again', () => {
  expect(new CpuTally(new Map([[1, 5_000]])).microseconds).toBe(0)
})
