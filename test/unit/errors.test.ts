import { expect, it } from 'vitest'
import { describeError } from '../../src/errors.ts'

it('describes anything that was thrown, in text that Postgres can store', () => {
  expect(describeError(new TypeError('no'))).toBe('TypeError: no')
  expect(describeError('just text')).toBe('just text')
  expect(describeError(new Error('a\u0000b\ud800c'))).toBe('Error: ab\ufffdc')
})

it('cuts long texts without leaving half a character behind', () => {
  for (let padding = 0; padding < 4; padding += 1) {
    const text = describeError('x'.repeat(padding) + '😀'.repeat(2_000))
    expect(text.length).toBeLessThanOrEqual(2_000)
    expect(text.isWellFormed()).toBe(true)
  }
})
