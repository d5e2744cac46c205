import { expect, it } from 'vitest'
import { backgroundLoops } from '../../../src/runtime/background.ts'
import { Bell } from '../../../src/runtime/bell.ts'
import { silentLogger } from '../../../src/runtime/logger.ts'
import { EmitIn } from '../../../src/unit-of-work/emit-in.ts'
import { lenientRules, newEvent } from '../../support/doubles/sample-events.ts'
import { defer } from '../../support/timing/deferred.ts'

// A database that fails between two statements cannot be asked to, so these are stand-ins.
it('wakes the fallback when committed events could not be leased', async () => {
  const bell = new Bell()
  const rung = defer()
  bell.onRing(rung.resolve)
  const emitIn = new EmitIn({
    store: {
      saveIn: async () => ({ transaction: '5', dueInMs: null }),
      endedTransactions: async () => new Map([['5', true]]),
      lease: () => Promise.reject(new Error('the connection is gone')),
    },
    options: { ...lenientRules, catalog: null, maxInFlight: 10, thresholdMs: 1_000 } as never,
    units: {} as never,
    backlog: null,
    delivery: {
      sends: true,
      takesAny: () => true,
      handOver: () => {},
      expect: () => {},
      leave: () => {},
    },
    newLoop: backgroundLoops(silentLogger),
    bell,
  })
  emitIn.start()
  await emitIn.emitIn({ query: async () => ({ rows: [] }) }, newEvent())
  await rung.promise
  await emitIn.stop()
  expect(await emitIn.emitIn({ query: async () => ({ rows: [] }) }, [])).toEqual([])
})
