import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineEvents, event } from '../../../src/event/catalog.ts'
import { type EmitArguments, type EmitRules, prepareEmitted } from '../../../src/event/emit.ts'
import type { PreparedEvent } from '../../../src/event/event.ts'
import { lenientRules, newEvent } from '../../support/doubles/sample-events.ts'

const SECRET = 'hunter2'
const catalog = defineEvents({
  OrderPlaced: event<{ orderId: string }>({ aggregate: 'order', key: (e) => e.orderId }),
  OrderCompleted: event({
    schema: z.object({
      orderId: z.string().trim(),
      total: z.coerce.number(),
      note: z.string().default(''),
    }),
    aggregate: 'order',
    key: (e) => e.orderId,
    topic: 'orders',
    headers: { tenant: 'acme', source: 'shop' },
    maxAttempts: 3,
    version: 2,
  }),
  Counted: event<bigint | number>({ aggregate: 'count', key: (n) => n, version: 'v1-beta' }),
  Quoted: event<string>({ aggregate: 'quote', key: BigInt }),
  Nested: event<{ a: { id: string } }>({ aggregate: 'a', key: (e) => e.a.id }),
})
const rules: EmitRules = { ...lenientRules, catalog }
const prepare = (...given: EmitArguments) => prepareEmitted(given, rules)
const one = (...given: EmitArguments) => prepare(...given)[0] as PreparedEvent
const completed = (details?: unknown, over: Partial<EmitRules> = {}) => {
  const payload = { orderId: 'o-1', total: '7' }
  return prepareEmitted(['OrderCompleted', payload, details], { ...rules, ...over })[0]!
}
const thrownBy = (...given: EmitArguments): unknown => {
  try {
    prepare(...given)
  } catch (error) {
    return error
  }
  return undefined
}

describe('emit() with a catalog', () => {
  it.each(['abc', ['abc'], null])('refuses %j as headers', (headers) => {
    expect(() => completed({ headers })).toThrow(/OrderCompleted: headers must be an object/)
  })

  it('takes aggregate, key, topic, headers, attempts and version from the declaration', () => {
    expect(completed()).toMatchObject({
      type: 'OrderCompleted',
      aggregateType: 'order',
      aggregateId: 'o-1',
      topic: 'orders',
      headers: { tenant: 'acme', source: 'shop', 'event-version': '2' },
      maxAttempts: 3,
    })
    expect(one('Counted', 7)).toMatchObject({ headers: { 'event-version': 'v1-beta' } })
  })

  it('has no version where none is declared', () => {
    expect(one('OrderPlaced', { orderId: 'o-1' }).headers).toEqual({})
  })

  it('saves what the schema answers, not what was given', () => {
    expect(JSON.parse(completed().payload)).toEqual({ orderId: 'o-1', total: 7, note: '' })
  })

  it('takes the key from what the schema answers', () => {
    const payload = { orderId: ' o-1 ', total: 1 }
    expect(one('OrderCompleted', payload)).toMatchObject({ aggregateId: 'o-1' })
  })

  it('takes numbers as keys, and passes them through the same gate', () => {
    expect(one('Counted', 7).aggregateId).toBe('7')
    expect(thrownBy('Counted', 1.5)).toMatchObject({ code: 'EVENT_INVALID' })
  })

  it('takes a name, an object or many objects', () => {
    const payload = { orderId: 'o-1' }
    const details = { correlationId: 'c-1' }
    const { id: _, ...expected } = one('OrderPlaced', payload, details)
    expect(one({ type: 'OrderPlaced', payload, ...details })).toMatchObject(expected)
    expect(expected.headers).toEqual({ 'correlation-id': 'c-1' })
    const many = prepare([
      { type: 'OrderPlaced', payload },
      { type: 'Counted', payload: 1 },
    ])
    expect(many.map(({ type }) => type)).toEqual(['OrderPlaced', 'Counted'])
    expect(prepare([])).toEqual([])
  })

  it('can be handed to forEach(), which calls it with more than an event', () => {
    expect(one({ type: 'Counted', payload: 1 }, 0, [])).toMatchObject({ aggregateId: '1' })
  })

  it('looks for the topic in the details, the declaration, the options, the aggregate', () => {
    expect(completed({ topic: 'mine' }, { topic: 'theirs' }).topic).toBe('mine')
    expect(completed({ topic: undefined }, { topic: 'theirs' }).topic).toBe('orders')
    const placed = ['OrderPlaced', { orderId: 'o-1' }] as const
    expect(prepareEmitted(placed, { ...rules, topic: 'theirs' })[0]!.topic).toBe('theirs')
    expect(one(...placed).topic).toBe('order')
  })

  it('looks for attempts in the details, the declaration, then in the options', () => {
    const over = { maxAttemptsByType: { OrderCompleted: 5, OrderPlaced: 5 }, maxAttempts: 9 }
    expect(completed({ maxAttempts: 1 }, over).maxAttempts).toBe(1)
    expect(completed({}, over).maxAttempts).toBe(3)
    const placed = prepareEmitted(['OrderPlaced', { orderId: 'o-1' }], { ...rules, ...over })
    expect(placed[0]!.maxAttempts).toBe(5)
    const counted = prepareEmitted(['Counted', 1], { ...rules, ...over })
    expect(counted[0]!.maxAttempts).toBe(9)
  })

  it('puts headers given at emit before those of the declaration, one by one', () => {
    const { headers } = completed({ headers: { tenant: 'other', more: 'x' } })
    expect(headers).toEqual({ tenant: 'other', source: 'shop', more: 'x', 'event-version': '2' })
  })

  it('tells the function of the option topic what the event is', () => {
    const topic = (given: { aggregateType: string }) => `shop.${given.aggregateType}`
    const [placed] = prepareEmitted(['OrderPlaced', { orderId: 'o-1' }], { ...rules, topic })
    expect(placed!.topic).toBe('shop.order')
  })

  it('refuses a name that is not in the catalog, and says which was meant', () => {
    expect(thrownBy('OrderComplete', {})).toMatchObject({
      name: 'EventRefusedError',
      code: 'EVENT_UNKNOWN',
      message: "the catalog has no event 'OrderComplete'; did you mean 'OrderCompleted'?",
    })
    expect(thrownBy({ type: 'Refund', payload: 1 })).toMatchObject({
      message:
        "the catalog has no event 'Refund'; expected one of OrderPlaced, OrderCompleted, Counted, Quoted, Nested",
    })
    expect(thrownBy('constructor', {})).toMatchObject({ code: 'EVENT_UNKNOWN' })
  })

  it('refuses a payload that does not fit', () => {
    expect(thrownBy('OrderCompleted', { orderId: 1, total: 1 })).toMatchObject({
      code: 'PAYLOAD_INVALID',
      message: expect.stringContaining("at 'orderId';") as string,
    })
    expect(thrownBy('OrderCompleted')).toMatchObject({ code: 'PAYLOAD_INVALID' })
  })

  it.each([
    ['an aggregate type by hand', ['OrderPlaced', {}, { aggregateType: 'x' }], /'aggregateType' c/],
    ['an aggregate id by hand', [{ type: 'Counted', payload: 1, aggregateId: 1 }], /'aggregateId'/],
    [
      'a type among the details',
      ['Counted', 1, { type: 'OrderPlaced' }],
      /'type' cannot be a detail/,
    ],
    ['a payload among the details', ['Counted', 1, { payload: 2 }], /'payload' cannot be a detail/],
    ['details that are no object', ['Counted', 1, 'c-1'], /details must be an object, got string/],
    [
      'a detail that there is not',
      ['Counted', 1, { corelationId: 'c' }],
      /no field 'corelationId'/,
    ],
    ['the header of the version', ['Counted', 1, { headers: { 'event-version': '' } }], /itself/],
    ['an event without a type', [{ payload: 1 }], /type must be a non-empty string/],
    ['a type without end', ['x'.repeat(1_000_000)], /type takes 1000000 bytes/],
    ['something that is no event', [7], /takes an event object/],
    ['something among events', [[null]], /takes an event object/],
    ['a payload without what makes the key', ['OrderPlaced', {}], /key\(\) must .* got undefined/],
    ['a key that is null', ['OrderPlaced', { orderId: null }], /key\(\) must .* got null/],
  ] as [string, EmitArguments, RegExp][])('refuses %s', (_, given, message) => {
    expect(thrownBy(...given)).toMatchObject({
      code: 'EVENT_INVALID',
      message: expect.stringMatching(message) as string,
    })
  })

  it('says where key() threw, and not with which words', () => {
    expect(thrownBy('Nested', {})).toMatchObject({
      code: 'EVENT_INVALID',
      message: 'Nested: key() threw TypeError; does the payload match its declaration?',
    })
    const error = thrownBy('Quoted', SECRET)
    expect(error).toMatchObject({ code: 'EVENT_INVALID' })
    expect(inspect(error)).not.toContain(SECRET)
  })
})

describe('emit() without a catalog', () => {
  it('takes events of any name, as objects only', () => {
    const without = { ...rules, catalog: null }
    expect(prepareEmitted([newEvent({ type: 'Any' })], without)[0]!.type).toBe('Any')
    expect(() => prepareEmitted(['OrderPlaced', {}], without)).toThrow(
      /got string; to emit by name, set the option events and call emit\(name, payload\)/,
    )
  })
})
