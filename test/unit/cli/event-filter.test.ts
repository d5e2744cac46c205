// Times of --since and --before: those that are relative are so to the database's clock, not to this machine's.
import { expect, it } from 'vitest'
import { moment } from '../../../src/cli/arguments.ts'
import { timesOf } from '../../../src/cli/event-filter.ts'

const NOW = Date.parse('2020-01-01T12:00:00Z')

it('counts back from the clock of the database', async () => {
  const now = async () => NOW
  expect(await timesOf({ since: moment('2h'), before: moment('30m') }, { now })).toEqual({
    since: new Date('2020-01-01T10:00:00Z'),
    before: new Date('2020-01-01T11:30:00Z'),
  })
})

it('takes a time as it is, and asks no clock for it', async () => {
  const now = () => Promise.reject(new Error('asked'))
  const since = moment('2026-01-31T12:00:00+02:00')
  expect(await timesOf({ since }, { now })).toEqual({ since: new Date('2026-01-31T10:00:00Z') })
  expect(await timesOf({}, { now })).toEqual({})
})

it.each(['2026-02-31', '2026-01-31T12:00:00', 'yesterday'])('refuses %s', (text) => {
  expect(() => moment(text)).toThrow('Expected a time such as 2026-01-31T12:00:00Z')
})
