import { describe, expect, it } from 'vitest'
import { prepareEvent } from '../../../src/event/prepare.ts'
import { lenientRules, newEvent } from '../../support/doubles/sample-events.ts'
import type { NewEvent } from '../../../src/index.ts'

const prepare = (event: Partial<NewEvent>) => prepareEvent(newEvent(event), lenientRules)

describe('the schedule of an event', () => {
  it('is a time, a time span from the save, or missing', () => {
    const at = new Date('2026-12-24T18:00:00Z')
    expect(prepare({ deliverAt: at }).schedule).toEqual({ at })
    expect(prepare({ deliverAfter: '15m' }).schedule).toEqual({ afterMs: 900_000 })
    expect(prepare({ deliverAfter: 0 }).schedule).toEqual({ afterMs: 0 })
    expect(prepare({})).not.toHaveProperty('schedule')
  })

  it('gives the event a lane of its own', () => {
    const aggregateId = 'one'
    const plain = prepare({ aggregateId }).lane
    expect(prepare({ aggregateId }).lane).toBe(plain)
    const lanes = [1, 2, 3].map(() => prepare({ aggregateId, deliverAfter: '1h' }).lane)
    expect(new Set([plain, ...lanes]).size).toBe(4)
    expect(lanes.every((lane) => lane >= 0)).toBe(true)
  })

  it('is not a time that Postgres does not know', () => {
    expect(prepare({ deliverAt: new Date(-8.64e15) }).schedule).toEqual({ at: new Date(0) })
  })

  it.each<[string, object, RegExp]>([
    ['both', { deliverAt: new Date(), deliverAfter: 1 }, /exclude each other; pass one of them/],
    ['text for a time', { deliverAt: '2027-01-01' }, /deliverAt must be a valid Date, got '2027/],
    [
      'no time',
      { deliverAt: new Date(Number.NaN) },
      /deliverAt must be a valid Date, got an invalid Date/,
    ],
    ['null', { deliverAt: null }, /deliverAt must be a valid Date, got null/],
    ['no duration', { deliverAfter: '15 minutes' }, /deliverAfter must be a duration such as/],
    ['less than nothing', { deliverAfter: -1 }, /deliverAfter must be a duration such as/],
    ['more than ten years', { deliverAfter: '3654d' }, /at most 3653d, ten years, got '3654d'/],
    ['a time beyond ten years', { deliverAt: new Date(8.64e15) }, /within ten years, got \+275760/],
  ])('is refused with %s', (_, event, message) => {
    const act = () => prepare(event)
    expect(act).toThrow(message)
    expect(act).toThrow(expect.objectContaining({ code: 'EVENT_INVALID' }))
  })
})
