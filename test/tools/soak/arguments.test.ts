import { expect, it } from 'vitest'
import { parseSoakArguments } from './arguments.ts'

it('soaks for ten minutes unless told otherwise', () => {
  expect(parseSoakArguments([])).toEqual({ seconds: 600, rate: 60 })
})

it('takes what it is given', () => {
  const args = ['--seconds', '30', '--rate', '100']
  expect(parseSoakArguments(args)).toEqual({ seconds: 30, rate: 100 })
})

it.each([
  [['--seconds', '5'], /--seconds must be a whole number from 20 to 7200, got '5'/],
  [['--rate', '0'], /--rate must be a whole number from 1/],
  [['--rate', 'fast'], /--rate must be a whole number/],
  [['--hours', '1'], /--hours/],
  [['600'], /600/],
])('refuses %j', (args, message) => {
  expect(() => parseSoakArguments(args)).toThrow(message)
})
