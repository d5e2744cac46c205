// How instances are shown: as old as they are by now, and whether their loss is trouble still.
import { expect, it } from 'vitest'
import { showInstances } from '../../../src/dashboard/shown.ts'
import { sampleInstance } from '../../support/doubles/sample-instance.ts'

it('lets an outage grow older since the report, as the finding about it does', () => {
  const circuit = { publisher: 'kafka', topic: null, forMs: 3_000, error: 'away' }
  const instance = sampleInstance({ seenMsAgo: 4_000, report: { circuits: [circuit] } })
  const [shown] = showInstances([instance], 500)
  expect([shown!.seenMsAgo, shown!.circuits]).toEqual([4_500, [{ ...circuit, forMs: 7_500 }]])
})

it('calls an instance late before it is lost', () => {
  const states = [24_000, 26_000, 61_000].map((seenMsAgo) => {
    const [shown] = showInstances([sampleInstance({ seenMsAgo })], 0)
    return [shown!.isLate, shown!.isLost]
  })
  expect(states).toEqual([
    [false, false],
    [true, false],
    [false, true],
  ])
})

it('misses a lost instance until another one has taken its place', () => {
  const lost = sampleInstance({ id: 'lost', seenMsAgo: 300_000 })
  const isMissed = (...others: ReturnType<typeof sampleInstance>[]) =>
    showInstances([lost, ...others], 0).map((shown) => [shown.isLost, shown.isMissed])
  expect(isMissed()).toEqual([[true, true]])
  const older = sampleInstance({ id: 'older' })
  expect(isMissed(older)).toEqual([
    [true, true],
    [false, false],
  ])
  const startedAt = new Date(lost.seenAt.getTime() + 60_000)
  const newer = sampleInstance({ id: 'newer', startedAt })
  // One that is gone comes last.
  expect(isMissed(newer)).toEqual([
    [false, false],
    [true, false],
  ])
})
