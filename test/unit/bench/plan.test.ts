import { expect, it } from 'vitest'
import { makePlan } from '../../../bench/plan.ts'

it('lets everybody take part in each round, and another one begin it', () => {
  const all = makePlan({ quick: false, only: ['throughput'] }).map(({ label }) => label)
  const labels = all.filter((label) => label.startsWith('throughput 64'))
  const count = (wanted: string) => labels.filter((label) => label === wanted).length
  const size = new Set(labels.filter((label) => count(label) === 5)).size
  const rounds = Array.from({ length: 5 }, (_, n) => labels.slice(n * size, (n + 1) * size))
  expect(new Set(rounds.map(([beginner]) => beginner)).size).toBe(5)
  for (const round of rounds) expect(round.toSorted()).toEqual(rounds[0]!.toSorted())
})

it('runs ours by default and with retention: 0, in loads and drains, also in a short run', () => {
  for (const quick of [false, true]) {
    const labels = makePlan({ quick, only: ['throughput', 'drain'] }).map(({ label }) => label)
    for (const workload of ['throughput 64', 'drain']) {
      expect(labels).toContain(`${workload}: aftercommit`)
      expect(labels).toContain(`${workload}: aftercommit (retention: 0)`)
    }
  }
})

it('fills each table once before the claims of all rounds', () => {
  const labels = makePlan({ quick: false, only: ['claims'] }).map(({ label }) => label)
  const isFill = (label: string) => label.startsWith('claims: making')
  expect(labels.filter(isFill)).toHaveLength(5)
  expect(labels.slice(-15).some(isFill)).toBe(false)
  expect(labels.filter((label) => label === 'claims: topic out of reach')).toHaveLength(3)
})
