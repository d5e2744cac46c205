import { expect, it } from 'vitest'
import { Slots } from '../../../src/runtime/slots.ts'
import { defer } from '../../support/timing/deferred.ts'

it('runs only as many at once as there are slots, in order, also after a failure', async () => {
  const slots = new Slots(2)
  const ends = [defer(), defer(), defer(), defer()]
  const begun: number[] = []
  const running = ends.map((end, n) =>
    slots.take(async () => {
      begun.push(n)
      await end.promise
      if (n === 0) throw new Error('no')
      return n
    }),
  )
  await Promise.resolve()
  expect(begun).toEqual([0, 1])
  ends[0]!.resolve()
  await expect(running[0]).rejects.toThrow('no')
  await Promise.resolve()
  expect(begun).toEqual([0, 1, 2])
  for (const end of ends) end.resolve()
  expect(await Promise.all(running.slice(1))).toEqual([1, 2, 3])
  expect(await slots.take(async () => 'free')).toBe('free')
})
