// Times that people write.
import { expect, it } from 'vitest'
import { parseTime } from '../../../src/checks/time.ts'

it.each([
  ['2026-01-31T12:00:00Z', '2026-01-31T12:00:00.000Z'],
  ['2026-01-31T12:00:00.123Z', '2026-01-31T12:00:00.123Z'],
  ['2026-01-31T12:00+02:00', '2026-01-31T10:00:00.000Z'],
  ['2026-01-31', '2026-01-31T00:00:00.000Z'],
  ['2024-02-29', '2024-02-29T00:00:00.000Z'],
])('takes %s', (text, time) => {
  expect(parseTime(text)?.toISOString()).toBe(time)
})

it.each([
  '2026-02-31T12:00:00Z',
  '2026-02-29',
  '2026-13-01',
  '2026-01-31T25:00:00Z',
  '2026-01-31T12:00:00',
  '2026-01-31 12:00:00Z',
  '2026-01-31 (or so)',
  '2026-01-31T12:00:00Z and more',
  'yesterday',
  '',
  7,
  null,
])('takes %j for none', (text) => {
  expect(parseTime(text)).toBeNull()
})
