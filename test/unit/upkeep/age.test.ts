import { expect, it } from 'vitest'
import { formatAge } from '../../../src/upkeep/age.ts'

it.each([
  [0, '0 ms'],
  [412.3, '412 ms'],
  [999.7, '1 s'],
  [39_987, '40 s'],
  [119_000, '1 min'],
  [3_600_000, '1 h'],
  [5_400_000, '1 h 30 min'],
  [7 * 86_400_000, '7 d'],
  [187_200_000, '2 d 4 h'],
])('says %d ms as %s', (ms, said) => {
  expect(formatAge(ms)).toBe(said)
})
