import { performance } from 'node:perf_hooks'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Upcoming } from '../../../src/delivery/upcoming.ts'

let now = 0
beforeEach(() => {
  now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
})
afterEach(() => vi.restoreAllMocks())

it('remembers the first of the times that it was told, and a millisecond more', () => {
  const upcoming = new Upcoming()
  expect(upcoming.inMs).toBe(Number.POSITIVE_INFINITY)
  upcoming.expect(100)
  upcoming.expect(50)
  upcoming.expect(70)
  expect(upcoming.inMs).toBe(51)
  now = 20
  expect(upcoming.inMs).toBe(31)
  now = 200
  expect(upcoming.inMs).toBe(0)
})

it('forgets a time that has passed, and no other', () => {
  const upcoming = new Upcoming()
  upcoming.expect(100)
  upcoming.forgetPast()
  expect(upcoming.inMs).toBe(101)
  now = 101
  upcoming.forgetPast()
  expect(upcoming.inMs).toBe(Number.POSITIVE_INFINITY)
})
