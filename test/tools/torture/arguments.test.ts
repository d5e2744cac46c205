import { expect, it } from 'vitest'
import { FAULT_KINDS, parseTortureArguments } from './arguments.ts'

it('has defaults that need no reading', () => {
  expect(parseTortureArguments([])).toEqual({
    seconds: 60,
    seed: 1,
    workers: 4,
    faults: FAULT_KINDS,
    brokers: 1,
    client: 'kafkajs',
    partitioned: false,
  })
})

it('takes what it is given', () => {
  const numbers = ['--seconds', '300', '--seed', '7', '--workers', '2']
  const args = [
    ...numbers,
    '--faults',
    'none',
    '--brokers',
    '3',
    '--client',
    'platformatic',
    '--partitioned',
  ]
  expect(parseTortureArguments(args)).toEqual({
    seconds: 300,
    seed: 7,
    workers: 2,
    faults: [],
    brokers: 3,
    client: 'platformatic',
    partitioned: true,
  })
  const { faults } = parseTortureArguments(['--faults', 'kill,kafka'])
  expect(faults).toEqual(['kill', 'kafka'])
})

it.each([
  [['--seconds', '0'], /--seconds must be a whole number from 1/],
  [['--seconds', '1.5'], /--seconds must be a whole number/],
  [['--seed', '-1'], /seed/],
  [['--workers', 'many'], /--workers must be a whole number from 1 to 32, got 'many'/],
  [['--faults', 'some'], /--faults must be all, none or some of kill,.*, got 'some'/],
  [['--client', 'x'], /--client must be kafkajs or platformatic, got 'x'/],
  [['--brokers', '2'], /--brokers must be 1 or 3, got '2'/],
  [['--minutes', '5'], /--minutes/],
  [['60'], /60/],
])('refuses %j', (args, message) => {
  expect(() => parseTortureArguments(args)).toThrow(message)
})
