import fc from 'fast-check'
import { expect, it } from 'vitest'
import { fitSlope } from './fit.ts'

it('finds the slope of a straight line, wherever it lies', () => {
  const whole = fc.integer({ min: -1_000, max: 1_000 })
  const xs = fc.uniqueArray(whole, { minLength: 2, maxLength: 50 })
  fc.assert(
    fc.property(whole, whole, xs, (slope, start, values) => {
      const points = values.map((x) => ({ x, y: start + slope * x }))
      expect(fitSlope(points)).toBeCloseTo(slope, 6)
    }),
  )
})

it('sees a slow growth through a noise that is larger', () => {
  const points = Array.from({ length: 100 }, (_, x) => ({ x, y: x * 0.1 + (x % 2 ? 5 : -5) }))
  expect(fitSlope(points)).toBeCloseTo(0.1, 1)
})

it('calls what goes up and down flat', () => {
  const points = [3, 5, 3, 5, 3].map((y, x) => ({ x, y }))
  expect(fitSlope(points)).toBeCloseTo(0, 10)
})

it.each([
  ['no point', []],
  ['one point', [{ x: 1, y: 7 }]],
  [
    'points above each other',
    [
      { x: 1, y: 7 },
      { x: 1, y: 9 },
    ],
  ],
])('sees no direction in %s', (_, points) => {
  expect(fitSlope(points)).toBe(0)
})
