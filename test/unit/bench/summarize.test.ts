import { describe, expect, it } from 'vitest'
import { nameOf } from '../../../bench/results.ts'
import { rowsOf } from '../../../bench/scenes.ts'
import { summarizeClaims, summarizeDrains } from '../../../bench/summarize.ts'

const drained = (postgresCpuUs: number | null) => ({
  rowsPerSecond: 1,
  arrivals: { delivered: 1, lost: 0, duplicates: 0 },
  postgresCpuUs,
})

describe('the turns of a benchmark', () => {
  it('give the median of what Postgres paid, round by round', () => {
    const figures = summarizeDrains([drained(60), drained(40), drained(50)])
    expect(figures.postgresCpuUs).toBe(50)
    expect(figures.postgresCpuUsEach).toEqual([60, 40, 50])
  })

  it('say nothing of Postgres where it was not measured', () => {
    expect(summarizeDrains([drained(null)]).postgresCpuUs).toBeNull()
  })

  it('compare claims within a turn, so that a slow one does not count as a slow claim', () => {
    const figures = summarizeClaims({ scene: 'resting after a failure', rows: 10 }, [
      { claimMs: 10, firstMs: 30, ratio: 1 },
      { claimMs: 40, firstMs: 90, ratio: 1.1 },
      { claimMs: 12, firstMs: 20, ratio: 1.2 },
    ])
    expect(figures).toMatchObject({ rows: 10, rounds: 3, claimMs: 12, firstMs: 30, ratio: 1.1 })
  })

  it('go by the setting that differs, where there is one', () => {
    expect(nameOf({ contender: 'aftercommit', tuned: true })).toBe('aftercommit (retention: 0)')
    expect(nameOf({ contender: 'pg-boss', tuned: true })).toBe('pg-boss (tuned)')
    expect(nameOf({ contender: 'aftercommit', tuned: false })).toBe('aftercommit')
  })

  it('have a tenth of the rows where all of them are in one lane', () => {
    expect(rowsOf('nothing else', 1_000_000)).toBe(0)
    expect(rowsOf('topic out of reach', 1_000_000)).toBe(1_000_000)
    expect(rowsOf('one lane behind a failed head', 1_000_000)).toBe(100_000)
  })
})
