import { describe, expect, it } from 'vitest'
import { ratiosOf } from '../../../bench/ratios.ts'
import {
  type ClaimFigures,
  type DrainFigures,
  type LoadFigures,
  noResults,
  type Results,
} from '../../../bench/results.ts'
import { median, spreadOf } from '../../../bench/spread.ts'
import { isMet, isSound, isUnclear, judgeTargets } from '../../../bench/targets.ts'

function load(perSecond: number, p50 = 1): LoadFigures {
  const spread = { p50, p95: p50 * 2, p99: p50 * 3 }
  return {
    rounds: 3,
    perSecond,
    perSecondEach: [perSecond],
    latencyMs: spread,
    unitMs: spread,
    committed: 100,
    lost: 0,
    duplicates: 0,
    statementsPerEvent: 2,
    walBytesPerEvent: 1_000,
    cpuSecondsPer10kEvents: 5,
    peakRssMb: 100,
  }
}

function drain(rowsPerSecond: number, postgresCpuUsEach: number[] = []): DrainFigures {
  const figures = { rounds: 3, rowsPerSecond, rowsPerSecondEach: [rowsPerSecond] }
  const postgresCpuUs = postgresCpuUsEach[0] ?? null
  return { ...figures, postgresCpuUs, postgresCpuUsEach, delivered: 1, lost: 0, duplicates: 0 }
}

function claims(scene: ClaimFigures['scene'], ratioEach: number[]): ClaimFigures {
  const times = { claimMs: 1, claimMsEach: [1], firstMs: 2 }
  return { scene, rows: 1, rounds: 3, ...times, ratio: median(ratioEach), ratioEach }
}

const figureOf = (results: Results, key: string, node = 20) =>
  judgeTargets(results, node).find((target) => target.key === key)

describe('the figures of a benchmark', () => {
  it('are judged against the fastest peer, whether that is tuned or not', () => {
    const busy = {
      aftercommit: load(900),
      'pg-boss': load(100),
      'pg-boss (tuned)': load(450),
      'graphile-worker': load(300),
      'bare-idea': load(2_000),
    }
    const key = 'throughput against the best peer, 64 concurrent'
    const judged = figureOf({ ...noResults(), loads: { 'throughput 64': busy } }, key)!
    expect(judged.figure).toBe(2)
    expect(isMet(judged)).toBe(true)
    expect(isMet({ ...judged, figure: 1.79 })).toBe(false)
  })

  it('are compared with a dual write on the same Kafka client', () => {
    const busy = {
      aftercommit: load(700),
      'dual-write': load(1_000),
      'aftercommit-platformatic': load(900),
      'dual-write-platformatic': load(1_200),
      'pg-boss (tuned)': load(500),
    }
    const results = { ...noResults(), loads: { 'throughput 64': busy } }
    const judge = (key: string) => figureOf(results, key)!
    const against = 'throughput against dual-write, 64 concurrent'
    expect(judge(against)).toMatchObject({ figure: 0.7, target: 0.65 })
    const same = judge(`${against}, both on @platformatic/kafka`)
    expect(same).toMatchObject({ figure: 0.75, target: 0.75 })
    expect(isMet(same)).toBe(true)
    const peer = judge('throughput on @platformatic/kafka against the best peer, 64 concurrent')
    expect(peer).toMatchObject({ figure: 1.8, target: 2 })
  })

  it('have to be better in a drain with @platformatic/kafka from Node 24 on', () => {
    const drains = {
      drain: {
        'aftercommit-platformatic': drain(12),
        'kafkajs-only': drain(20),
        'pg-boss (tuned)': drain(6),
      },
    }
    const results = { ...noResults(), drains }
    const bars = [20, 22, 24, 26].map((node) => {
      const mark = figureOf(results, 'drain on @platformatic/kafka against kafkajs-only', node)!
      const peer = figureOf(results, 'drain on @platformatic/kafka against the best peer', node)!
      expect([mark.figure, peer.figure]).toEqual([0.6, 2])
      return [mark.target, isMet(mark), peer.target, isMet(peer)]
    })
    expect(bars).toEqual([
      [0.55, true, 1.8, true],
      [0.55, true, 1.8, true],
      [0.65, false, 2.2, false],
      [0.65, false, 2.2, false],
    ])
  })

  it('say what Postgres pays for an event, by default and where published rows are deleted', () => {
    const drains = {
      drain: {
        aftercommit: drain(10, [43, 41, 45]),
        'aftercommit (retention: 0)': drain(12, [30, 29, 31]),
        'kafkajs-only': drain(20),
      },
    }
    const results = { ...noResults(), drains }
    const byDefault = figureOf(results, 'Postgres CPU for a drained event, in µs')!
    expect(byDefault).toMatchObject({ figure: 43, range: [41, 45] })
    expect([isMet(byDefault), isUnclear(byDefault)]).toEqual([false, true])
    const deleting = figureOf(results, 'Postgres CPU for a drained event with retention: 0, in µs')!
    expect([isMet(deleting), isUnclear(deleting)]).toEqual([true, false])
    expect(figureOf(results, 'drain against kafkajs-only')!.figure).toBe(0.5)
  })

  it('judge each thing in the way of a claim by itself', () => {
    const found = [
      claims('topic out of reach', [1.1, 1.2, 1.3]),
      claims('resting after a failure', [2.2, 1.9, 2.4]),
    ]
    const results = { ...noResults(), claims: found }
    const away = figureOf(results, 'claim against nothing else: topic out of reach')!
    expect(away).toMatchObject({ figure: 1.2, range: [1.1, 1.3], target: 2 })
    const resting = figureOf(results, 'claim against nothing else: resting after a failure')!
    expect([isMet(resting), isUnclear(resting)]).toEqual([false, true])
    const missing = 'claim against nothing else: published under an old transaction'
    expect(figureOf(results, missing)!.figure).toBeNull()
  })

  it('are no less than they are where less is better', () => {
    const overhead = { noneMs: 1, handWrittenMs: 2, withOutboxMs: 2.2 }
    const judged = figureOf(
      { ...noResults(), overhead },
      'unit of work against the INSERT by hand',
    )!
    expect(judged.figure).toBeCloseTo(1.1)
    expect(isMet(judged)).toBe(false)
    expect(isMet({ ...judged, figure: 1.05 })).toBe(true)
  })

  it('are missing, not met, for what was not run', () => {
    const targets = judgeTargets(noResults(), 20)
    expect(targets.every(({ figure }) => figure === null)).toBe(true)
    expect(targets.map(isMet)).not.toContain(true)
  })

  it('are unclear where the rounds are on both sides of a target', () => {
    const key = 'throughput against dual-write, 64 concurrent'
    const busy = (each: number[]) => {
      const others = { ...load(4_000), perSecondEach: each }
      return { aftercommit: load(1_400), 'dual-write': others }
    }
    const judge = (each: number[]) =>
      figureOf({ ...noResults(), loads: { 'throughput 64': busy(each) } }, key)!
    expect(judge([4_300, 4_000, 2_000]).range).toEqual([1_400 / 4_300, 0.7])
    expect(isUnclear(judge([4_300, 4_000, 2_000]))).toBe(true)
    expect(isUnclear(judge([4_300, 4_000, 3_900]))).toBe(false)
  })

  it('are not relied on when something of ours was lost or came to no figure', () => {
    const missed = { ...load(1), lost: 1 }
    const of = (figures: Record<string, LoadFigures>) => ({
      ...noResults(),
      loads: { any: figures },
    })
    const history = [{ published: 0, pollMs: 1, rowsPerSecond: 1, lost: 1, duplicates: 0 }]
    const failure = { contender: 'aftercommit', turn: 'idle', reason: 'it ended' } as const
    expect(isSound(of({ aftercommit: load(1), 'pg-boss': missed }))).toBe(true)
    expect(isSound(of({ aftercommit: missed }))).toBe(false)
    expect(isSound(of({ 'aftercommit (retention: 0)': missed }))).toBe(false)
    expect(isSound(of({ 'aftercommit-platformatic': missed }))).toBe(false)
    expect(isSound({ ...noResults(), history })).toBe(false)
    expect(isSound({ ...noResults(), failures: [failure] })).toBe(false)
    expect(isSound({ ...noResults(), failures: [{ ...failure, contender: 'pg-boss' }] })).toBe(true)
  })

  it('come as ratios to each other contender as well', () => {
    const ratios = ratiosOf({
      ...noResults(),
      loads: { latency: { aftercommit: load(50, 3), 'dual-write': load(50, 2) } },
      history: [
        { published: 0, pollMs: 1, rowsPerSecond: 100, lost: 0, duplicates: 0 },
        { published: 10, pollMs: 3, rowsPerSecond: 50, lost: 0, duplicates: 0 },
      ],
      claims: [claims('nothing else', [1]), { ...claims('topic out of reach', [4]), firstMs: 6 }],
      drains: { drain: { aftercommit: drain(10, [40]), 'kafkajs-only': drain(20) } },
      overhead: { noneMs: 1, handWrittenMs: 2, withOutboxMs: 3 },
    })
    expect(ratios['latency']!['dual-write']).toMatchObject({ perSecond: 1, latencyP99: 1.5 })
    expect(ratios['history']).toEqual({ '10 against 0': { pollMs: 3, drainTime: 2 } })
    expect(ratios['overhead']!['no event']).toEqual({ unitMs: 3 })
    expect(ratios['claims']).toEqual({ 'topic out of reach': { claimMs: 4, firstMs: 3 } })
    expect(ratios['drain']).toEqual({ 'kafkajs-only': { rowsPerSecond: 0.5 } })
  })

  it('are medians, and what lies beyond them', () => {
    expect(median([3, 1, 2])).toBe(2)
    expect(median([4, 1, 2, 3])).toBe(2.5)
    const hundred = Array.from({ length: 100 }, (_, n) => 100 - n)
    expect(spreadOf(hundred)).toEqual({ p50: 51, p95: 96, p99: 100 })
  })
})
