import { expect, it } from 'vitest'
import { parseFailOverArguments } from './arguments.ts'

it('promotes a synchronous standby ten times unless it is asked for something else', () => {
  const usual = { promotions: 10, standby: 'synchronous', units: 150, seed: 1, workers: 4 }
  expect(parseFailOverArguments([])).toEqual(usual)
  const args = ['--promotions', '2', '--standby', 'asynchronous', '--units', '9', '--workers', '1']
  const wanted = { promotions: 2, standby: 'asynchronous', units: 9, seed: 1, workers: 1 }
  expect(parseFailOverArguments(args)).toEqual(wanted)
})

it.each([
  [['--promotions', '0'], /--promotions must be a whole number from 1/],
  [['--standby', 'warm'], /--standby must be synchronous or asynchronous, got 'warm'/],
])('refuses %j', (args, message) => {
  expect(() => parseFailOverArguments(args)).toThrow(message)
})
