import { expect, it } from 'vitest'
import { parseScaleArguments } from './arguments.ts'

it('measures one, two and four processes unless told otherwise', () => {
  expect(parseScaleArguments([])).toEqual({
    work: 'outbox',
    processes: [1, 2, 4],
    outboxes: 1,
    rate: 300,
    seconds: 20,
    payload: 1_000,
  })
})

it('takes what it is given', () => {
  const args = ['--work', 'idle', '--processes', '4', '--outboxes', '25', '--seconds', '60']
  expect(parseScaleArguments(args)).toMatchObject({
    work: 'idle',
    processes: [4],
    outboxes: 25,
    seconds: 60,
  })
})

it.each([
  [['--work', 'nothing'], /--work must be one of business, outbox, cdc, idle, got 'nothing'/],
  [['--processes', '1,none'], /--processes must be a whole number from 1 to 16, got 'none'/],
  [['--rate', '0'], /--rate must be a whole number from 1/],
  [['600'], /600/],
])('refuses %j', (args, message) => {
  expect(() => parseScaleArguments(args)).toThrow(message)
})
