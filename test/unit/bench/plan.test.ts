import { expect, it } from 'vitest'
import { makePlan } from '../../../bench/plan.ts'

it('lets everybody take part in each round, and another one begin it', () => {
  const labels = makePlan({ quick: false, only: ['throughput'] }).map(({ label }) => label)
  const quickest = new Set(labels.filter((label) => label.startsWith('throughput 16')))
  const first = labels.indexOf('throughput 64: aftercommit')
  const rounds = Array.from({ length: 5 }, (_, n) => {
    return labels.slice(first + n * quickest.size, first + (n + 1) * quickest.size)
  })
  expect(new Set(rounds.map(([beginner]) => beginner)).size).toBe(5)
  for (const round of rounds) expect(round.toSorted()).toEqual(rounds[0]!.toSorted())
})
