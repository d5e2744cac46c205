// Postgres dies under load and its synchronous standby takes over. One promotion; `npm run failover` does it as often as
// asked.
import { afterEach, expect, it } from 'vitest'
import { failOverUnderLoad } from '../../tools/failover/fail-over.ts'
import { describeWithOwnKafka } from '../../support/fixture.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

describeWithOwnKafka('a fail-over to a synchronous standby', () => {
  it('loses, invents and reorders nothing', { timeout: 180_000 }, async () => {
    const result = await failOverUnderLoad(
      { promotions: 1, standby: 'synchronous', units: 60, seed: 1, workers: 2 },
      { closeLater: (close) => closing.push(close), say: () => {} },
    )
    expect(result).toMatchObject({
      lost: 0,
      phantom: 0,
      outOfOrder: 0,
      corrupted: 0,
      left: 0,
      dead: 0,
      unitsGone: 0,
      repeatedSeqs: 0,
      cancelledSent: 0,
      cancelledTwice: 0,
      early: 0,
      recorded: result.committed - result.cancelled,
    })
    expect(result.committed).toBeGreaterThan(120)
  })
})
