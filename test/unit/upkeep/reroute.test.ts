// A move to another topic that fails between two pages: what it moved before is logged, and sent at once.
import { expect, it } from 'vitest'
import { Bell } from '../../../src/runtime/bell.ts'
import type { Rerouted } from '../../../src/store/outbox/reroute.ts'
import { reroute } from '../../../src/upkeep/reroute.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'

it('logs what it moved before it failed, and rings for it', async () => {
  const pages: Rerouted[] = [{ moved: 998, held: 2, last: { at: '-infinity', seq: 1_000 } }]
  const store = {
    async reroute() {
      const page = pages.shift()
      if (!page) throw new Error('connection lost')
      return page
    },
  }
  const logger = recordingLogger()
  const bell = new Bell()
  let rings = 0
  bell.onRing(() => (rings += 1))
  const moving = reroute({ store, logger, bell }, 'ordres', 'orders', { by: 'ada' })
  await expect(moving).rejects.toThrow('connection lost')
  const fields = { from: 'ordres', to: 'orders', moved: 998, held: 2, by: 'ada' }
  expect(logger.lines).toEqual([
    { level: 'info', fields, message: 'events moved to another topic' },
  ])
  expect(rings).toBe(1)
})
