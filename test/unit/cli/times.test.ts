import { expect, it } from 'vitest'
import { formatTime } from '../../../src/cli/output/times.ts'

it.each([
  [0, 'just now'],
  [-999, 'just now'],
  [999, 'just now'],
  [-13_000, '13 s ago'],
  [-300_000, '5 min ago'],
  [40_000, 'in 40 s'],
  [5_400_000, 'in 1 h 30 min'],
])('says %i ms from now as %s', (ms, text) => {
  expect(formatTime(new Date(1e12 + ms), 1e12)).toBe(text)
})
