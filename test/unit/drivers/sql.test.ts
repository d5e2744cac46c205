import { describe, expect, it } from 'vitest'
import { sql } from '../../../src/drivers/sql.ts'

describe('a statement', () => {
  it('has its values as numbered parameters', () => {
    const statement = sql`select ${1}::int, ${'two'}::text`
    expect(statement.text).toBe('select $1::int, $2::text')
    expect(statement.values).toEqual([1, 'two'])
  })

  it('without values is its text', () => {
    expect(sql`select 1`.text).toBe('select 1')
    expect(sql.raw('select 1').text).toBe('select 1')
  })

  it('takes another statement in, with its values in place', () => {
    const inner = sql`b = ${2} or c = ${null}`
    const statement = sql`a = ${1} and (${inner}) and ${sql.raw('d')} = ${4}${sql``}`
    expect(statement.text).toBe('a = $1 and (b = $2 or c = $3) and d = $4')
    expect(statement.values).toEqual([1, 2, null, 4])
  })

  it('can be joined from parts', () => {
    const statement = sql.join([sql`a = ${1}`, sql`b`, sql`c = ${3}`], sql` and `)
    expect(statement.text).toBe('a = $1 and b and c = $2')
    expect(statement.values).toEqual([1, 3])
  })
})
