import { setTimeout as delay } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { Leases } from '../../src/leases.ts'
import { Lifecycle } from '../../src/lifecycle.ts'
import { resolveOptions } from '../../src/options.ts'
import { Settler } from '../../src/settle.ts'
import { recordingLogger } from '../support/recording-logger.ts'
import { outboxEvent } from '../support/sample-events.ts'

// The one clock that fake timers do not reach.
vi.mock('node:timers/promises', () => ({ setTimeout: vi.fn(async () => {}) }))

it('rests longer and longer while outcomes cannot be recorded, and tells so once', async () => {
  const wasBehind: boolean[] = []
  const settleFailed = async () => {
    wasBehind.push(settler.isBehind)
    if (wasBehind.length <= 8) throw new Error('away')
    return new Set<string>()
  }
  const logger = recordingLogger()
  const options = resolveOptions({
    db: { execute: async () => [], transaction: async () => {} },
    publisher: { name: 'none', publish: async () => [] },
    logger,
  })
  const leases = new Leases({ renew: async () => new Map() }, options.thresholdMs)
  const wakePoller = vi.fn()
  const store = { settleFailed, settlePublished: async () => new Set<string>() }
  const settler = new Settler(store, leases, new Lifecycle(logger), options, wakePoller)
  const leased = { event: outboxEvent(), token: 'mine', committedAt: null, deadline: 0 }
  await settler.record([{ leased, path: 'fallback', kind: 'untried' }])

  const rests = vi.mocked(delay).mock.calls.map(([ms]) => ms)
  expect(rests).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
  expect(wasBehind).toEqual([false, ...Array<boolean>(8).fill(true)])
  // While it was behind the poller took nothing.
  expect(settler.isBehind).toBe(false)
  expect(wakePoller).toHaveBeenCalledOnce()
  expect(logger.lines).toMatchObject([
    { level: 'error', fields: { outcomes: 1 }, message: /could not record outcomes/ as never },
    { level: 'info', message: 'outcomes are recorded again' },
  ])
})
