// Results fit a terminal of 80 columns, and nothing is left out.
import { expect, it } from 'vitest'
import { formatPairs, formatTable } from '../../../src/cli/output/table.ts'
import { cut, wrap } from '../../../src/cli/output/wrap.ts'

const row = {
  id: '019c0f5e-7b4a-7000-8000-000000000000',
  saved: '3m ago',
  status: 'dead_letter',
  type: 'OrderPlaced',
  aggregate: 'order 17',
  topic: 'orders',
  next: '-',
  error: 'Error: the broker refused the message because it is larger than it may be',
}

it('keeps columns in one line where there is room', () => {
  const [head, first, ...more] = formatTable([row]).split('\n')
  expect(head).toMatch(/^ID +SAVED +STATUS +TYPE +AGGREGATE +TOPIC +NEXT +ERROR$/)
  expect(first!.indexOf(row.topic)).toBe(head!.indexOf('TOPIC'))
  expect(more).toEqual([])
})

it('puts what does not fit below its row, by name', () => {
  const text = formatTable([row, row], { width: 80, below: [['a remark']] })
  const lines = text.split('\n')
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80)
  expect(lines[0]).toMatch(/^ID +SAVED +STATUS +TYPE$/)
  expect(lines.slice(1, 6)).toEqual([
    `${row.id}  3m ago  dead_letter  OrderPlaced`,
    '    aggregate: order 17 · topic: orders',
    '    error: Error: the broker refused the message because it is larger than it',
    '    may be',
    '    a remark',
  ])
})

it('breaks long values between words, and aligns them', () => {
  const text = formatPairs({ paused: 'nothing', error: row.error }, 40)
  expect(text.split('\n')).toEqual([
    'paused  nothing',
    'error   Error: the broker refused the',
    '        message because it is larger',
    '        than it may be',
  ])
  expect(wrap(row.error, Infinity, 9)).toBe(row.error)
  expect(cut(row.error, 10)).toBe('Error: th…')
})
