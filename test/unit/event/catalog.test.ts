import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineEvents, event } from '../../../src/event/catalog.ts'

const whole = { aggregate: 'order', key: () => 'o-1' }
const define = (declaration: unknown, name = 'OrderCompleted') =>
  defineEvents({ [name]: declaration } as never)

describe('defineEvents()', () => {
  it('takes what can be emitted, and answers a copy that nobody can change', () => {
    const headers = { tenant: 'acme' }
    const declaration = { ...whole, headers, topic: 'orders', maxAttempts: 3, version: 2 }
    const events = defineEvents({ OrderCompleted: event(declaration) })
    headers.tenant = 'other'
    expect(events.OrderCompleted).toEqual({ ...declaration, headers: { tenant: 'acme' } })
    expect(Object.isFrozen(events)).toBe(true)
    expect(Object.isFrozen(events.OrderCompleted)).toBe(true)
    expect(Object.isFrozen(events.OrderCompleted.headers)).toBe(true)
    expect(defineEvents(events)).toEqual(events)
  })

  it.each([
    [{ key: whole.key }, /'OrderCompleted' needs aggregate, .* such as 'order', got undefined/],
    [{ ...whole, aggregate: '' }, /needs aggregate/],
    [{ aggregate: 'order' }, /'OrderCompleted' needs key, a function .*payload.orderId, got undef/],
    [{ ...whole, key: 'orderId' }, /needs key, a function .*, got 'orderId'/],
    [{ ...whole, agregate: 'order' }, /'OrderCompleted' has no option 'agregate'; did you mean 'a/],
    [{ ...whole, retries: 3 }, /has no option 'retries'; expected one of aggregate, key, schema/],
    [{ ...whole, schema: {} }, /schema of the event 'OrderCompleted' must be a Standard Schema/],
    [{ ...whole, schema: null }, /schema of .* must be a Standard Schema/],
    [{ ...whole, topic: '' }, /could not be emitted: OrderCompleted: topic must be a non-empty/],
    [{ ...whole, maxAttempts: 0 }, /maxAttempts must be a whole number from 1 to 1000000, got 0/],
    [{ ...whole, headers: { n: 1 } }, /the header 'n' must be a string/],
    [
      { ...whole, headers: { 'Event-Version': '1' } },
      /'Event-Version' is set by the outbox itself/,
    ],
    [{ ...whole, version: '' }, /version of the event 'OrderCompleted' must be a whole number or/],
    [{ ...whole, version: 1.5 }, /version of .* got 1.5/],
    [{ ...whole, version: {} }, /version of .* got an object/],
    [{ ...whole, version: '\u0000' }, /the header 'event-version' must be a string without U/],
    [{ ...whole, aggregate: 'x'.repeat(256) }, /aggregateType takes 256 bytes/],
    [null, /the event 'OrderCompleted' takes an object with options, got null/],
    [whole.key, /takes an object with options, got a function/],
  ])('refuses %o', (declaration, message) => {
    expect(() => define(declaration)).toThrow(message)
    expect(() => define(declaration)).toThrow(expect.objectContaining({ code: 'OPTIONS_INVALID' }))
  })

  it('refuses a name that could not be saved', () => {
    expect(() => define(whole, '')).toThrow(/type must be a non-empty string/)
    expect(() => define(whole, 'x'.repeat(256))).toThrow(/type takes 256 bytes/)
  })

  it.each([[undefined], [null], ['events'], [whole.key]])('refuses %o as a catalog', (events) => {
    expect(() => defineEvents(events as never)).toThrow(/events must be an object of declarations/)
  })

  it.each([[{}], [[]], [new Map([['OrderCompleted', whole]])]])('refuses %o, empty', (events) => {
    expect(() => defineEvents(events as never)).toThrow(/events declares nothing; declare an event/)
  })

  it('takes the schema as it is, also one that is a function', () => {
    const schema = Object.assign(() => {}, { '~standard': z.string()['~standard'] })
    expect(define({ ...whole, schema })).toMatchObject({ OrderCompleted: { schema } })
  })
})
