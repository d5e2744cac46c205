import { inspect } from 'node:util'
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  isStandardSchema,
  type StandardIssue,
  type StandardSchema,
  validatePayload,
} from '../../../src/event/standard-schema.ts'

const SECRET = 'hunter2'
const answering = (validate: () => unknown) =>
  ({ '~standard': { version: 1, vendor: 'test', validate } }) as StandardSchema
const failing = (...paths: unknown[]) => {
  const issues = paths.map((path) => ({ message: SECRET, path }) as StandardIssue)
  return answering(() => ({ issues }))
}
const thrownBy = (schema: StandardSchema, payload: unknown = {}): unknown => {
  try {
    validatePayload('OrderCompleted', schema, payload)
  } catch (error) {
    return error
  }
  return undefined
}

describe.each([
  ['zod', z.object({ items: z.array(z.object({ price: z.number() })) })],
  ['valibot', v.object({ items: v.array(v.object({ price: v.number() })) })],
  ['arktype', type({ items: type({ price: 'number' }).array() })],
] satisfies [string, StandardSchema][])('a schema of %s', (_, schema) => {
  it('is known as one, and lets through what fits', () => {
    expect(isStandardSchema(schema)).toBe(true)
    const payload = { items: [{ price: 1 }] }
    expect(validatePayload('OrderCompleted', schema, payload)).toEqual(payload)
  })

  it('refuses with the path, and without the value', () => {
    const items = [{ price: 1 }, { price: 2 }, { price: SECRET }]
    const error = thrownBy(schema, { items })
    expect(error).toMatchObject({
      name: 'EventRefusedError',
      code: 'PAYLOAD_INVALID',
      message: expect.stringMatching(/^OrderCompleted: .* at 'items\[2\]\.price'; /) as string,
    })
    expect(inspect(error)).not.toContain(SECRET)
  })

  it('names the payload itself if it is not even an object', () => {
    expect(thrownBy(schema, SECRET)).toMatchObject({
      message: expect.stringContaining('at the payload itself;') as string,
    })
  })
})

describe('validatePayload()', () => {
  it('answers what the schema made of the payload', () => {
    const schema = z.object({ at: z.coerce.date(), note: z.string().default('none') })
    expect(validatePayload('A', schema, { at: 0, more: 1 })).toEqual({
      at: new Date(0),
      note: 'none',
    })
  })

  it.each([
    [['items', 2, 'price'], "'items[2].price'"],
    [[{ key: 'items' }, { key: 0 }], "'items[0]'"],
    [[0], "'[0]'"],
    [['prix', 'été'], "'prix.été'"],
    [['a.b', "it's", '\n'], `'["a.b"]["it's"]["\\n"]'`],
    [['a', Symbol('secret'), { key: {} }, null], "'a[?][?][?]'"],
    [undefined, 'the payload itself'],
    [[], 'the payload itself'],
    ['items', 'the payload itself'],
    [['x'.repeat(300)], `'${'x'.repeat(200)}...'`],
  ])('writes the path %o as %s', (path, text) => {
    expect(thrownBy(failing(path))).toMatchObject({
      message: `OrderCompleted: the payload does not match its schema at ${text}; correct the payload or the schema`,
    })
  })

  it('names each place once, and counts those past the fifth', () => {
    const error = thrownBy(failing(['a'], ['a'], ['b'], ['c'], ['d'], ['e'], ['f'], ['g']))
    expect(error).toMatchObject({
      message: expect.stringContaining("at 'a', 'b', 'c', 'd', 'e' and 2 more;") as string,
    })
  })

  it('refuses when a schema finds issues and names none', () => {
    expect(thrownBy(failing())).toMatchObject({ code: 'PAYLOAD_INVALID' })
    expect(thrownBy(answering(() => ({ issues: [null] })))).toMatchObject({
      code: 'PAYLOAD_INVALID',
    })
  })

  it('says where a schema threw, and not with which words', () => {
    const parse = (text: string) => JSON.parse(text) as unknown
    const schema = v.pipe(v.string(), v.transform(parse))
    const error = thrownBy(schema, SECRET)
    expect(error).toMatchObject({
      code: 'SCHEMA_FAILED',
      message: 'OrderCompleted: its schema threw SyntaxError; fix the schema',
    })
    expect(inspect(error)).not.toContain(SECRET)
    expect(inspect(error)).toContain('standard-schema.test.ts')
    const words = thrownBy(answering(() => throwing(SECRET)))
    expect(words).toMatchObject({ code: 'SCHEMA_FAILED' })
    expect(inspect(words)).not.toContain(SECRET)
  })

  it.each([
    ['zod', z.string().refine(async () => true), 'x'],
    ['zod, whose transform throws', z.string().transform(throwing), SECRET],
    [
      'valibot',
      v.pipeAsync(
        v.string(),
        v.checkAsync(async () => true),
      ),
      'x',
    ],
    ['a rejection', answering(() => Promise.reject(new Error(SECRET))), 'x'],
    // oxlint-disable-next-line unicorn/no-thenable
    ['a thenable', answering(() => ({ then: () => {} })), 'x'],
  ])('refuses a schema that answers later: %s', (_, schema, payload) => {
    const error = thrownBy(schema, payload)
    expect(inspect(error)).not.toContain(SECRET)
    expect(error).toMatchObject({
      code: 'SCHEMA_FAILED',
      message: expect.stringContaining('returned a promise') as string,
    })
  })

  it.each([[undefined], [null], [true], ['text'], [{ issues: 'some' }], [{ issues: null }]])(
    'refuses a schema that answers %o',
    (answer) => {
      expect(thrownBy(answering(() => answer))).toMatchObject({ code: 'SCHEMA_FAILED' })
    },
  )
})

describe('isStandardSchema()', () => {
  it.each([
    [undefined],
    [null],
    ['text'],
    [{}],
    [() => {}],
    [{ '~standard': null }],
    [{ '~standard': { version: 2, validate: () => {} } }],
    [{ '~standard': { version: 1 } }],
  ])('says no to %o', (value) => {
    expect(isStandardSchema(value)).toBe(false)
  })
})

function throwing(thrown: unknown): never {
  throw thrown
}
