import { expect, it } from 'vitest'
import { type BenchArguments, WORKLOADS } from '../../../bench/arguments.ts'
import { makePlan } from '../../../bench/plan.ts'

const planOf = (args: Partial<BenchArguments>) => {
  return makePlan({ quick: false, only: WORKLOADS, pageOnly: false, ...args })
}
const labelsOf = (args: Partial<BenchArguments>) => planOf(args).map(({ label }) => label)
const count = (labels: readonly string[], wanted: string) => {
  return labels.filter((label) => label === wanted).length
}

it('lets everybody take part in each round of a session, and another one begin it', () => {
  const all = labelsOf({ only: ['throughput'] })
  const labels = all.filter((label) => label.startsWith('throughput 64'))
  const size = new Set(labels.filter((label) => count(labels, label) === 5)).size
  const rounds = Array.from({ length: 5 }, (_, n) => labels.slice(n * size, (n + 1) * size))
  const beginners = rounds.map(([beginner]) => beginner)
  expect(new Set(beginners.slice(0, 3)).size).toBe(3)
  expect(new Set(beginners.slice(3)).size).toBe(2)
  for (const round of rounds) expect(round.toSorted()).toEqual(rounds[0]!.toSorted())
})

it('ends the processes that decide targets at 64 once in between', () => {
  const labels = labelsOf({ only: ['throughput'] })
  const turn = 'throughput 64: dual-write-platformatic'
  const turns = [...labels.keys()].filter((n) => labels[n] === turn)
  const end = labels.indexOf('the end of dual-write-platformatic')
  expect(turns.map((n) => n < end)).toEqual([true, true, true, false, false])
  expect(count(labels, 'the end of dual-write-platformatic')).toBe(2)
})

it('measures no contender that polls all the time while the process of another is there', () => {
  const labels = labelsOf({ only: ['throughput', 'latency'] })
  const polling = 'pg-transactional-outbox-polling (tuned)'
  const first = labels.indexOf(`throughput 64: ${polling}`)
  expect(labels[first - 1]).toMatch(/^the end of /)
  expect(labels.slice(first, first + 3)).toEqual([
    `throughput 64: ${polling}`,
    `latency: ${polling}`,
    `the end of ${polling}`,
  ])
})

it('runs ours by default, with retention: 0 and on both Kafka clients, also in a short run', () => {
  for (const quick of [false, true]) {
    const labels = labelsOf({ quick, only: ['throughput', 'drain'] })
    for (const workload of ['throughput 64', 'drain']) {
      expect(labels).toContain(`${workload}: aftercommit`)
      expect(labels).toContain(`${workload}: aftercommit (retention: 0)`)
      expect(labels).toContain(`${workload}: aftercommit-platformatic`)
    }
    expect(labels).toContain('throughput 64: dual-write-platformatic')
  }
})

it('gives what decides a target several rounds, and the rest one', () => {
  const labels = labelsOf({})
  expect(count(labels, 'throughput 16: textbook')).toBe(3)
  expect(count(labels, 'latency: dual-write')).toBe(3)
  expect(count(labels, 'drain: aftercommit-platformatic')).toBe(3)
  expect(count(labels, 'drain: platformatic-only')).toBe(1)
  expect(count(labels, 'hotkey: aftercommit')).toBe(1)
})

it('leaves out what it was not asked for', () => {
  const workloads = new Set(planOf({ only: ['latency'] }).map(({ workload }) => workload))
  expect(workloads).toEqual(
    new Set(['warming up Postgres and Kafka', 'latency', 'ending processes']),
  )
})

it('plans half an hour for a whole run, and five minutes for a quick one', () => {
  const minutes = (args: Partial<BenchArguments>) => {
    return planOf(args).reduce((sum, { weight }) => sum + weight, 0) / 60
  }
  expect(minutes({})).toBeLessThan(31)
  const quick = ['throughput', 'latency', 'overhead', 'drain', 'claims'] as const
  expect(minutes({ quick: true, only: quick })).toBeLessThan(5)
})

it('fills each table once before the claims of all rounds', () => {
  const labels = labelsOf({ only: ['claims'] })
  const isFill = (label: string) => label.startsWith('claims: making')
  expect(labels.filter(isFill)).toHaveLength(5)
  expect(labels.slice(-13).some(isFill)).toBe(false)
  expect(count(labels, 'claims: topic out of reach')).toBe(3)
  expect(count(labels, 'claims: nothing else')).toBe(1)
})
