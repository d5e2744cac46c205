import { expect, it } from 'vitest'
import { isWarm, watchAcks } from '../../../bench/drain-watch.ts'

it('takes a drain for warm after its first 20,000 rows, or after two seconds if it has fewer', () => {
  expect(isWarm(60_000, 19_999, 5_000)).toBe(false)
  expect(isWarm(60_000, 20_000, 100)).toBe(true)
  expect(isWarm(10_000, 9_000, 2_000)).toBe(false)
  expect(isWarm(10_000, 100, 2_001)).toBe(true)
})

it('measures a drain that was over before it was warm from its first ack', async () => {
  const counts = [0, 100, 500, 1_000]
  let looks = 0
  const acked = () => counts[Math.min(looks++, counts.length - 1)]!
  const [from, last] = await watchAcks(acked, { rows: 1_000, payloadBytes: 1, limitSeconds: 5 })
  expect([from.acked, last.acked]).toEqual([100, 1_000])
})
