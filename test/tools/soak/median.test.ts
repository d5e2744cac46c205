import { expect, it } from 'vitest'
import { medianOf } from './median.ts'

it('overlooks what a single look saw too much or too little', () => {
  const looks = [
    { Timeout: 16 },
    { Timeout: 15 },
    { Timeout: 16, FSReq: 1 },
    { Timeout: 19 },
    { Timeout: 16 },
  ]
  expect(medianOf(looks)).toEqual({ Timeout: 16 })
})

it('keeps what is there each time', () => {
  const looks = [3, 4, 3].map((sockets) => ({ sockets, pipes: 1 }))
  expect(medianOf(looks)).toEqual({ pipes: 1, sockets: 3 })
})

it('has nothing to say about nothing', () => {
  expect(medianOf([])).toEqual({})
})
