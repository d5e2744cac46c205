import { expect, it } from 'vitest'
import { planPhases, sampleEveryMs } from './phases.ts'

it('gives ten minutes one for warming up and three for each phase', () => {
  expect(planPhases(600).map(({ name, seconds }) => [name, seconds])).toEqual([
    ['warm-up', 60],
    ['steady', 180],
    ['held', 180],
    ['recovery', 180],
  ])
})

it.each([20, 30, 600, 7_200])('uses all of %d seconds', (seconds) => {
  const total = planPhases(seconds).reduce((sum, phase) => sum + phase.seconds, 0)
  expect(total).toBeCloseTo(seconds, 6)
})

it('samples a short run more often, a long one no more seldom than every 5 seconds', () => {
  expect(sampleEveryMs(20)).toBe(1_000)
  expect(sampleEveryMs(600)).toBe(5_000)
  expect(sampleEveryMs(7_200)).toBe(5_000)
})
