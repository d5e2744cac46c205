import { describe, expect, it } from 'vitest'
import { prepareEvent } from '../../../src/event/prepare.ts'
import { lenientRules, newEvent } from '../../support/doubles/sample-events.ts'

const prepare = (overrides: Parameters<typeof newEvent>[0], rules = {}) =>
  prepareEvent(newEvent(overrides), { ...lenientRules, ...rules })

describe('prepareEvent()', () => {
  it('gives each event a UUIDv7, ascending in the order of emit', () => {
    const ids = Array.from({ length: 100 }, () => prepare({}).id)
    expect(ids.every((id) => /^[0-9a-f]{8}-[0-9a-f]{4}-7/.test(id))).toBe(true)
    expect(ids.toSorted()).toEqual(ids)
  })

  it('takes numbers and BigInts as aggregate ids, exactly', () => {
    expect(prepare({ aggregateId: 7 }).aggregateId).toBe('7')
    expect(prepare({ aggregateId: 2n ** 64n }).aggregateId).toBe('18446744073709551616')
  })

  it.each([
    ['a missing type', { type: undefined as never }],
    ['an empty type', { type: '' }],
    ['a type of more than 255 bytes', { type: 'é'.repeat(128) }],
    ['a missing aggregate type', { aggregateType: undefined as never }],
    ['a missing aggregate type where a topic is given', { aggregateType: '', topic: 'orders' }],
    ['a missing aggregate id', { aggregateId: undefined as never }],
    ['an aggregate id that is not a whole number', { aggregateId: 1.5 }],
    ['an aggregate id that lost its digits', { aggregateId: 2 ** 60 }],
    ['an aggregate id of more than 512 bytes', { aggregateId: 'x'.repeat(513) }],
    ['a NUL in a key', { aggregateId: 'a\u0000b' }],
    ['a lone surrogate in a key', { aggregateId: 'a\ud800' }],
    ['an empty topic', { topic: '' }],
    ['an invalid date', { occurredAt: new Date('nonsense') }],
    ['a date that is text', { occurredAt: '2026-01-02' as never }],
    ['a header that is not text', { headers: { n: 1 as never } }],
    ['a header with NUL', { headers: { n: '\u0000' } }],
    ['a header that the outbox sets itself', { headers: { 'Event-Id': 'x' } }],
    ['the header of a version that a catalog would set', { headers: { 'event-version': '1' } }],
    ['a header without a name', { headers: { '': 'x' } }],
    ['headers that are text', { headers: 'abc' as never }],
    ['headers that are a list', { headers: ['abc'] as never }],
    ['headers that are null', { headers: null as never }],
    ['a correlation id that is not text', { correlationId: 7 as never }],
    ['a traceparent that is not text', { traceparent: {} as never }],
    ['a malformed traceparent', { traceparent: '00-1-2-01' }],
    ['a traceparent of zeros', { traceparent: `00-${'0'.repeat(32)}-b7ad6b7169203331-01` }],
    ['a traceparent in upper case', { traceparent: `00-${'A'.repeat(32)}-b7ad6b7169203331-01` }],
    ['version 00 with more fields', { traceparent: `00-${'a'.repeat(32)}-b7ad6b7169203331-01-x` }],
    ['version ff', { traceparent: `ff-${'a'.repeat(32)}-b7ad6b7169203331-01` }],
    ['zero attempts', { maxAttempts: 0 }],
    ['a field that events do not have', { corelationId: 'c-1', payload: 1 }],
    ['NaN as an aggregate id', { aggregateId: Number.NaN }],
    ['null as an aggregate id', { aggregateId: null as never }],
    ['half an attempt', { maxAttempts: 1.5 }],
    ['attempts without end', { maxAttempts: 1_000_001 }],
  ])('refuses %s', (_, overrides) => {
    expect(() => prepare(overrides)).toThrow(expect.objectContaining({ code: 'EVENT_INVALID' }))
  })

  it('refuses something that is no event at all', () => {
    expect(() => prepareEvent(null as never, lenientRules)).toThrow(/takes an event object/)
  })

  it('says which field was probably meant', () => {
    expect(() => prepare({ corelationId: 'c-1' } as never)).toThrow(
      /did you mean 'correlationId'\?/,
    )
  })

  it('counts payload and headers against maxPayloadBytes, in bytes', () => {
    const rules = { maxPayloadBytes: 12 }
    expect(prepare({ payload: 'éééé' }, rules).payload).toBe('"éééé"')
    expect(() => prepare({ payload: 'ééééé' }, rules)).toThrow(/take 14 bytes, more than .*\(12\)/)
    expect(() => prepare({ payload: 'ééééé' }, rules)).toThrow(
      expect.objectContaining({ code: 'PAYLOAD_TOO_LARGE' }),
    )
    expect(() => prepare({ payload: 1, headers: { a: 'long value' } }, rules)).toThrow(/maxPayload/)
  })

  it('never repeats the payload in an error', () => {
    const secret = 'hunter2'
    const attempts = [{ payload: { secret, n: 1n } }, { payload: [secret, Number.NaN] }]
    for (const overrides of attempts) {
      expect(() => prepare(overrides)).toThrow(
        expect.objectContaining({ message: expect.not.stringContaining(secret) as string }),
      )
    }
  })

  it('carries the correlation id and the trace context as headers, next to the free ones', () => {
    const headers = { tenant: 'acme' }
    const event = prepare({
      correlationId: 'c-1',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      headers,
    })
    expect(event.headers).toEqual({
      tenant: 'acme',
      'correlation-id': 'c-1',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    })
  })

  it('finds the topic in the event, then in the rules, then in the aggregate type', () => {
    expect(prepare({ topic: 'mine' }, { topic: 'theirs' }).topic).toBe('mine')
    expect(prepare({}, { topic: 'theirs' }).topic).toBe('theirs')
    expect(prepare({}, { topic: () => 'computed' }).topic).toBe('computed')
    expect(prepare({}).topic).toBe('order')
  })

  it('finds the number of attempts in the event, then by type, then in the rules', () => {
    const rules = { maxAttemptsByType: { OrderCompleted: 3 }, maxAttempts: 10 }
    expect(prepare({ maxAttempts: 1 }, rules).maxAttempts).toBe(1)
    expect(prepare({}, rules).maxAttempts).toBe(3)
    expect(prepare({ type: 'Other' }, rules).maxAttempts).toBe(10)
  })
})
