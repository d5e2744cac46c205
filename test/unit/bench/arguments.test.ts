import { expect, it } from 'vitest'
import { parseBenchArguments } from '../../../bench/arguments.ts'

it('refuses a workload that does not exist, and one that a quick run leaves out', () => {
  expect(() => parseBenchArguments(['--only', 'nonsense'])).toThrow("no workload 'nonsense'")
  expect(() => parseBenchArguments(['--quick', '--only', 'claims,hotkey'])).toThrow(
    "--quick leaves 'hotkey' out",
  )
})

it('runs everything unless it is told what', () => {
  expect(parseBenchArguments([]).only).toContain('hotkey')
  expect(parseBenchArguments(['--quick']).only).not.toContain('hotkey')
  expect(parseBenchArguments(['--only', 'hotkey']).only).toEqual(['hotkey'])
})

it('runs nothing where only the page is to be written', () => {
  expect(parseBenchArguments(['--page']).pageOnly).toBe(true)
  expect(parseBenchArguments([]).pageOnly).toBe(false)
})
