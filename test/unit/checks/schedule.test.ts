import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { requireSchedule } from '../../../src/checks/schedule.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: new Date(2026, 0, 2, 3, 4, 0) })
})
afterEach(() => {
  vi.useRealTimers()
})

it('takes a duration, due at once and then at that interval', () => {
  const { pauseMs, atOnce } = requireSchedule('cleanup', '1h')
  expect([pauseMs(), atOnce]).toEqual([3_600_000, true])
})

it('takes a cron expression, and waits for the time it names', () => {
  const { pauseMs, atOnce } = requireSchedule('cleanup', '30 4 * * *')
  expect([pauseMs(), atOnce]).toEqual([86 * 60_000, false])
  vi.setSystemTime(new Date(2026, 0, 2, 4, 29, 0))
  expect(pauseMs()).toBe(60_000)
})

it('knows the short names of cron', () => {
  expect(requireSchedule('cleanup', '@daily').pauseMs()).toBe(20 * 3_600_000 + 56 * 60_000)
})

it.each(['0 99 * * *', '* * *', '0 0 31 2 *', 'daily', '10', '1 h', true, 5, Number.NaN])(
  'refuses %j',
  (value) => {
    expect(() => requireSchedule('cleanup', value)).toThrow(/^cleanup must be/)
  },
)
