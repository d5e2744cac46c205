// Rates and percentiles, from what instances report with each beat.
import { describe, expect, it } from 'vitest'
import { percentiles, RateMeter } from '../../../src/dashboard/rates.ts'
import { LATENCY_BOUNDS } from '../../../src/upkeep/reporter.ts'
import { sampleInstance } from '../../support/doubles/sample-instance.ts'

const START = Date.parse('2026-01-01T00:00:00Z')
const beat = (seconds: number, immediate: number, given: object = {}) =>
  sampleInstance({
    seenAt: new Date(START + seconds * 1_000),
    report: { published: { immediate, fallback: immediate / 10 }, failed: immediate / 100 },
    ...given,
  })

describe('a rate', () => {
  it('is unknown after one beat, and then what came between two, by the second', () => {
    const meter = new RateMeter()
    expect(meter.read([beat(0, 1_000)])).toMatchObject({ immediate: null, latency: null })
    expect(meter.read([beat(10, 1_500)])).toMatchObject({
      immediate: 50,
      fallback: 5,
      failed: 0.5,
    })
  })

  it('holds until the next beat, whatever was sampled between', () => {
    const meter = new RateMeter()
    meter.read([beat(0, 0)])
    expect(meter.read([beat(10, 500)]).immediate).toBe(50)
    expect(meter.read([beat(10, 500)]).immediate).toBe(50)
    expect(meter.read([beat(20, 500)]).immediate).toBe(0)
  })

  it('is the sum over instances, each by its own beats', () => {
    const meter = new RateMeter()
    meter.read([beat(0, 0), beat(3, 0, { id: 'other' })])
    const rates = meter.read([beat(10, 100), beat(13, 300, { id: 'other' })])
    expect(rates.immediate).toBe(40)
  })

  it('leaves out an instance that stopped beating, and one that has begun anew', () => {
    const meter = new RateMeter()
    meter.read([beat(0, 0)])
    meter.read([beat(10, 500)])
    expect(meter.read([beat(10, 500, { seenMsAgo: 60_000 })]).immediate).toBe(0)
    expect(meter.read([beat(80, 7, { id: 'anew' })]).immediate).toBe(null)
  })

  it('is 0 where no instance runs', () => {
    expect(new RateMeter().read([])).toMatchObject({ immediate: 0, latency: null })
  })
})

describe('percentiles', () => {
  const counts = (byBucket: Record<number, number>) =>
    Array.from({ length: LATENCY_BOUNDS.length + 1 }, (_, n) => byBucket[n] ?? 0)

  it('are none when nothing was published', () => {
    expect(percentiles([counts({})])).toBeNull()
    expect(percentiles([])).toBeNull()
  })

  it('lie in their bucket, by its share', () => {
    const [first, second] = [LATENCY_BOUNDS[0]!, LATENCY_BOUNDS[1]!]
    const { p50Ms, p95Ms, p99Ms } = percentiles([counts({ 0: 50 }), counts({ 1: 50 })])!
    expect(p50Ms).toBeCloseTo(first)
    expect(p95Ms).toBeCloseTo(first + (second - first) * 0.9)
    expect(p99Ms).toBeCloseTo(first + (second - first) * 0.98)
  })

  it('are the last bound for what took longer', () => {
    const last = LATENCY_BOUNDS.at(-1)!
    expect(percentiles([counts({ [LATENCY_BOUNDS.length]: 3 })])).toEqual({
      p50Ms: last,
      p95Ms: last,
      p99Ms: last,
    })
  })
})
