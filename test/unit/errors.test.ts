import { expect, it } from 'vitest'
import { describeError, messageOf, withoutText } from '../../src/errors.ts'

it('describes anything that was thrown, in text that Postgres can store', () => {
  expect(describeError(new TypeError('no'))).toBe('TypeError: no')
  expect(describeError('just text')).toBe('just text')
  expect(describeError(new Error('a\u0000b\ud800c'))).toBe('Error: ab\ufffdc')
})

const UNREADABLE = [
  Object.create(null) as object,
  Object.defineProperty(new Error(), 'message', {
    get() {
      throw new Error('no')
    },
  }),
  Object.assign(new Error(), { message: Symbol('no') }),
]

it.each(UNREADABLE)('reads even what cannot be turned into text', (thrown) => {
  expect(describeError(thrown)).toBe('a thrown value that cannot be read')
  expect(messageOf(thrown)).toBe('a thrown value that cannot be read')
})

it('leaves the message out of an error and keeps its place, whatever its fields are', () => {
  const secret = new RangeError('hunter2\n    at work')
  const safe = withoutText(secret)
  expect(safe).toMatchObject({ name: 'RangeError' })
  expect(safe.stack).toMatch(/errors\.test\.ts/)
  expect(`${safe.message} ${safe.stack}`).not.toContain('hunter2')
  const without = Object.assign(new TypeError('hunter2'), { stack: null })
  expect(withoutText(without)).toMatchObject({ name: 'TypeError' })
  for (const thrown of UNREADABLE) expect(withoutText(thrown)).toBeInstanceOf(Error)
})

it('cuts long texts without leaving half a character behind', () => {
  for (let padding = 0; padding < 4; padding += 1) {
    const text = describeError('x'.repeat(padding) + '😀'.repeat(2_000))
    expect(text.length).toBeLessThanOrEqual(2_000)
    expect(text.isWellFormed()).toBe(true)
  }
})
