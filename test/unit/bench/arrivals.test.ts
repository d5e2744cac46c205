import { expect, it } from 'vitest'
import { arrivalsByTurn, arrivalsOf } from '../../../bench/arrivals.ts'

it('counts what is missing and what came again', () => {
  expect(arrivalsOf([0, 2, 2, 3], 5)).toEqual({ delivered: 3, lost: 2, duplicates: 1 })
})

it('counts no event as lost that was not expected', () => {
  expect(arrivalsOf([0, 1, 2], 2)).toEqual({ delivered: 3, lost: 0, duplicates: 0 })
})

it('knows of which turn of a process an event is missing or came again', () => {
  const ids = [0, 1, 3, 4, 4, 5]
  expect(arrivalsByTurn(ids, [3, 6])).toEqual([
    { delivered: 2, lost: 1, duplicates: 0 },
    { delivered: 3, lost: 0, duplicates: 1 },
  ])
})
