import { expect, it } from 'vitest'
import { targetTables } from '../../../bench/page.ts'
import { estimateLeft } from '../../../bench/progress.ts'
import { fileOf, makeReport } from '../../../bench/reports.ts'
import { noResults } from '../../../bench/results.ts'
import { TimeSheet } from '../../../bench/time-sheet.ts'

const reportOn = (node: string) =>
  makeReport({ quick: false, versions: { node }, spent: [] }, noResults())

it('keeps a run on another Node apart from the one of the page', () => {
  expect(fileOf('20.20.2')).toBe('latest.json')
  expect(fileOf('24.1.0')).toBe('node-24.json')
})

it('shows the targets of each Node with its own bars', () => {
  const text = targetTables([reportOn('20.20.2'), reportOn('24.1.0')])
  const [, of20, of24] = text.split('### Node ')
  const line = '| drain on @platformatic/kafka against kafkajs-only | at least'
  expect(of20).toContain(`${line} 0.55 |`)
  expect(of24).toContain(`${line} 0.65 |`)
})

it('adds up how long the turns of a workload took', async () => {
  const sheet = new TimeSheet()
  for (const weight of [3, 4]) await sheet.note({ workload: 'drain', weight }, async () => {})
  expect(sheet.spent).toMatchObject([{ workload: 'drain', turns: 2, plannedSeconds: 7 }])
})

it('believes the plan at first, and later what was seen', () => {
  expect(estimateLeft(1_800, 0, 0)).toBe(1_800)
  expect(estimateLeft(1_000, 1, 3)).toBeLessThan(1_050)
  expect(estimateLeft(600, 1_200, 2_400)).toBeGreaterThan(1_100)
})
