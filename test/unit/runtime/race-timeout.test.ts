import { expect, it, vi } from 'vitest'
import { raceTimeout } from '../../../src/runtime/race-timeout.ts'

const never = new Promise<never>(() => {})

it('returns what the promise came to, and leaves no timer behind', async () => {
  vi.useFakeTimers()
  try {
    expect(await raceTimeout(Promise.resolve('done'), 1_000)).toBe('done')
    const refused = raceTimeout(Promise.reject(new Error('refused')), 1_000)
    await expect(refused).rejects.toThrow('refused')
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})

it("returns 'late' after the limit, also if that has passed", async () => {
  expect(await raceTimeout(never, 1, { keepAlive: true })).toBe('late')
  expect(await raceTimeout(never, -1, { keepAlive: true })).toBe('late')
})

it('lets a promise that has settled win over a limit that has passed', async () => {
  expect(await raceTimeout(Promise.resolve('done'), -1)).toBe('done')
})

it('takes care of a rejection that comes too late', async () => {
  let reject: (error: Error) => void = () => {}
  const slow = new Promise<never>((_, refuse) => {
    reject = refuse
  })
  expect(await raceTimeout(slow, 1, { keepAlive: true })).toBe('late')
  // Vitest fails a file with an unhandled rejection.
  reject(new Error('too late'))
})
