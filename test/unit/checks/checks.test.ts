import { describe, expect, it } from 'vitest'
import { suggest } from '../../../src/checks/checks.ts'

describe('what was probably meant', () => {
  it.each([
    ['treshold', ['threshold', 'topic'], "did you mean 'threshold'?"],
    ['tabel', ['table', 'topic'], "did you mean 'table'?"],
    ['ordering', ['order', 'db'], "did you mean 'order'?"],
    ['y', ['x', 'table'], 'expected one of x, table'],
    ['def', ['key', 'schema'], 'expected one of key, schema'],
  ])('by %s of %j', (name, known, answer) => {
    expect(suggest(name, known)).toBe(answer)
  })
})
