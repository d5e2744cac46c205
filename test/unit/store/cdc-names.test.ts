// The names of publication and slot.
import { expect, it } from 'vitest'
import { cdcNames } from '../../../src/store/outbox/cdc/names.ts'

it('are plain where the names are', () => {
  expect(cdcNames('shop', { schema: 'public', name: 'outbox' })).toEqual({
    publication: 'aftercommit_public_outbox',
    slot: 'aftercommit_shop_public_outbox',
  })
})

it('keep apart what differs only in characters that a slot does not allow, and fit', () => {
  const tables = [
    { schema: 'a_b', name: 'c' },
    { schema: 'a', name: 'b_c' },
    { schema: 'a', name: 'b-c' },
    { schema: 'A', name: 'b-c' },
    { schema: 'x'.repeat(63), name: 'y'.repeat(49) },
    { schema: 'x'.repeat(63), name: 'z'.repeat(49) },
    { schema: 'ä', name: '订单' },
  ]
  const names = tables.flatMap((table) => Object.values(cdcNames('my-shop', table)))
  expect(new Set(names).size).toBe(names.length)
  for (const name of names) expect(name).toMatch(/^[a-z0-9_]{1,63}$/)
})
