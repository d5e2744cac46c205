import { describe, expect, it } from 'vitest'
import { Acks } from '../../../bench/acks.ts'
import type { Contender } from '../../../bench/contender.ts'
import { LoadLines } from '../../../bench/load-lines.ts'

const LOAD = { seconds: 0.01, concurrency: 64, eventsPerUnit: 1, payloadBytes: 1 }
const WARM_UP = { units: 300, seconds: 15 }

/** Notes how many units were under way at once, and acknowledges at once. */
function open() {
  const acks = new Acks()
  let units = 0
  const contender: Contender = {
    start: async () => {},
    async unit(events, committed) {
      units += 1
      committed()
      acks.note(events.map(({ id }) => ({ headers: { 'bench-id': id } })))
    },
    stop: async () => {},
  }
  return { lines: new LoadLines(contender, acks, true), units: () => units }
}

describe('a process that does several loads', () => {
  it('gets warm before the first, by its units', async () => {
    const { lines, units } = open()
    await lines.warmUp({ ...LOAD, warmUp: WARM_UP })
    expect(units()).toBe(300)
  })

  it('does not get warm again for a load that it knows, nor for one with a pace', async () => {
    const { lines, units } = open()
    await lines.warmUp({ ...LOAD, warmUp: WARM_UP })
    await lines.warmUp({ ...LOAD, warmUp: WARM_UP })
    await lines.warmUp({ ...LOAD, perSecond: 50, concurrency: 1 })
    expect(units()).toBe(300)
  })

  it('tries a load of another kind before it is measured', async () => {
    const { lines, units } = open()
    await lines.warmUp({ ...LOAD, warmUp: WARM_UP })
    await lines.warmUp({ ...LOAD, concurrency: 16, warmUp: WARM_UP })
    expect(units()).toBe(300 + 1_000)
  })

  it('numbers its events on, so that each load knows its own', async () => {
    const { lines } = open()
    await lines.warmUp({ ...LOAD, warmUp: WARM_UP })
    const first = await lines.measure({ ...LOAD, perSecond: 1_000 })
    const second = await lines.measure({ ...LOAD, perSecond: 2_000 })
    expect([first.committed, first.emitted]).toEqual([10, 310])
    expect([second.committed, second.emitted]).toEqual([20, 330])
  })
})
