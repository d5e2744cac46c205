import { describe, expect, it } from 'vitest'
import { encodePayload, isStorableJson } from '../../../src/event/payload.ts'

const cycle: Record<string, unknown> = {}
cycle['self'] = cycle

let deep: unknown = 1
for (let n = 0; n < 100_000; n += 1) deep = [deep]

describe('encodePayload()', () => {
  it.each([
    ['null', null],
    ['text with every kind of escape', 'a"\\\n\u0001é😀\\u0000'],
    ['numbers at their limits', [Number.MAX_SAFE_INTEGER, 5e-324, -1.5, 1e308]],
    ['nesting', { a: [{ b: {} }, [], null, false] }],
    ['a key called __proto__', JSON.parse('{"__proto__": 1}')],
  ])('keeps %s', (_, payload) => {
    expect(JSON.parse(encodePayload('T', payload))).toEqual(payload)
  })

  it('leaves out undefined properties, as optional fields are meant', () => {
    expect(encodePayload('T', { a: 1, b: undefined })).toBe('{"a":1}')
  })

  it('writes what toJSON() says', () => {
    expect(encodePayload('T', { at: new Date(0) })).toBe('{"at":"1970-01-01T00:00:00.000Z"}')
  })

  it.each([
    ['undefined', undefined],
    ['a BigInt', { n: 1n }],
    ['a function', { f: () => {} }],
    ['a symbol', { s: Symbol('s') }],
    ['a cycle', cycle],
    ['nesting without end', deep],
    ['NaN', { n: Number.NaN }],
    ['Infinity', [Number.POSITIVE_INFINITY]],
    ['an invalid date', { at: new Date('nonsense') }],
    ['undefined in an array', [1, undefined]],
    ['a Map', { m: new Map([[1, 2]]) }],
    ['a Set', new Set([1])],
    ['a Buffer', { b: Buffer.from('x') }],
    ['a typed array', { b: new Uint8Array(2) }],
    ['an ArrayBuffer', new ArrayBuffer(2)],
    ['U+0000', { text: 'a\u0000b' }],
    ['U+0000 in a key', { 'a\u0000b': 1 }],
    ['U+0000 behind an escaped backslash', '\\\u0000'],
    ['a lone surrogate', 'a\ud800b'],
    ['a Promise that nobody awaited', { total: Promise.resolve(1) }],
    ['an Error', new Error('boom')],
    ['a RegExp', { pattern: /x/ }],
    ['an object of which JSON would keep nothing', new WeakMap()],
    ['a toJSON() that throws', { toJSON: () => JSON.parse('{') }],
    ['the last of the lone surrogates', ['\udfff']],
  ])('refuses %s', (_, payload) => {
    expect(() => encodePayload('T', payload)).toThrow(
      expect.objectContaining({ code: 'PAYLOAD_NOT_JSON' }),
    )
  })

  it('keeps objects of a class that has fields', () => {
    const money = new (class Money {
      amount = 5
    })()
    expect(encodePayload('T', money)).toBe('{"amount":5}')
  })

  it.each([
    ['a cycle', cycle, /contains a cycle/],
    ['nesting without end', deep, /nested too deeply/],
    ['undefined', undefined, /use null/],
  ])('says what is wrong with %s', (_, payload, message) => {
    expect(() => encodePayload('T', payload)).toThrow(message)
  })

  it('names the property that is to blame', () => {
    expect(() => encodePayload('T', { order: { lines: [{ total: 1n }] } })).toThrow(
      /'order\.lines\.0\.total' is a BigInt/,
    )
    expect(() => encodePayload('T', new Map())).toThrow(/the payload itself is a Map/)
  })
})

it.each([
  ['"\\ud83d\\ude00"', true],
  ['"\\uD83D\\uDE00"', true],
  ['"\\\\ud83d"', true],
  ['"\\uD83D"', false],
  ['"\\ude00\\ud83d"', false],
  ['"\\u0000"', false],
  ['{"a":', false],
  [1, false],
])('takes %s, which others have written, for JSON that can be stored: %s', (text, isIt) => {
  expect(isStorableJson(text)).toBe(isIt)
})
