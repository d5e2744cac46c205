// Turns the payload into JSON: exactly, or not at all. JSON.stringify() drops functions and symbols. It turns NaN,
// Infinity and invalid dates into null, and a Map, a Promise or an Error into {}. The event would then differ from what
// was emitted, so all of these are refused. An undefined property is left out, which is how optional fields work.
import { isStorable } from '../checks/storable.ts'
import { EventRefusedError } from '../errors.ts'

/** A payload as it comes back from JSON: a `Date`, for instance, becomes the text that its toJSON() returns. */
export type AsJson<T> = unknown extends T
  ? T
  : T extends { toJSON(): infer Said }
    ? AsJson<Said>
    : T extends object
      ? { [Key in keyof T]: AsJson<T[Key]> }
      : T

/** Contains `true` if a type has a bigint, to the depth that a compiler follows with ease. */
export type HasBigint<T, Depth extends readonly unknown[] = []> = Depth['length'] extends 5
  ? false
  : unknown extends T
    ? false
    : T extends bigint
      ? true
      : T extends { toJSON(): unknown } | ((...given: never[]) => unknown)
        ? false
        : T extends readonly (infer Item)[]
          ? HasBigint<Item, [...Depth, 0]>
          : T extends object
            ? { [Key in keyof T]-?: HasBigint<T[Key], [...Depth, 0]> }[keyof T]
            : false

export function encodePayload(type: string, payload: unknown): string {
  // Maps each child to its parent, to name the place of a refused value.
  const places = new Map<unknown, { holder: unknown; key: string }>()
  let text: string | undefined
  try {
    text = JSON.stringify(payload, function (this: unknown, key: string, value: unknown) {
      const loss = lossOf(value, this, key)
      if (loss) throw notJson(type, `${placeOf(this, key, places)} is ${loss}`)
      if (typeof value === 'object' && value !== null) places.set(value, { holder: this, key })
      return value
    })
  } catch (thrown) {
    if (thrown instanceof EventRefusedError) throw thrown
    throw notJson(type, explain(thrown), thrown)
  }
  if (text === undefined) throw notJson(type, 'it is undefined; use null for an empty payload')
  if (hasUnstorableEscape(text)) {
    throw notJson(
      type,
      'a string in it contains U+0000 or a lone surrogate, which Postgres refuses',
    )
  }
  return text
}

function lossOf(value: unknown, holder: unknown, key: string): string | undefined {
  switch (typeof value) {
    case 'bigint':
      return 'a BigInt; send it as a string'
    case 'function':
      return 'a function'
    case 'symbol':
      return 'a symbol'
    case 'number':
      return Number.isFinite(value) ? undefined : `${value}, which JSON cannot represent`
    case 'undefined':
      return Array.isArray(holder) ? 'undefined inside an array; use null' : undefined
    case 'object':
      return lossOfObject(value, (holder as Record<string, unknown>)[key])
    default:
      return undefined
  }
}

/** `original` is the value before its toJSON(), which a replacer does not receive. */
function lossOfObject(value: object | null, original: unknown): string | undefined {
  if (value === null) return original instanceof Date ? 'an invalid date' : undefined
  if (ArrayBuffer.isView(original) || original instanceof ArrayBuffer) {
    return 'binary data; encode it as base64 first'
  }
  if (value instanceof Map || value instanceof Set) return 'a Map or Set; spread it first'
  if (value instanceof Promise) return 'a Promise; await it first'
  const prototype: unknown = Object.getPrototypeOf(value)
  const isPlain = prototype === Object.prototype || prototype === null || Array.isArray(value)
  if (isPlain || Object.keys(value).length > 0) return undefined
  return `an instance of ${value.constructor.name}, of which JSON would keep nothing`
}

function placeOf(
  holder: unknown,
  key: string,
  places: ReadonlyMap<unknown, { holder: unknown; key: string }>,
): string {
  const keys = [key]
  for (let place = places.get(holder); place; place = places.get(place.holder))
    keys.unshift(place.key)
  const path = keys.filter((one) => one !== '').join('.')
  return path === '' ? 'the payload itself' : `'${path}'`
}

function explain(thrown: unknown): string {
  if (thrown instanceof RangeError) return 'it is nested too deeply'
  const isCycle = thrown instanceof TypeError && /circular|cyclic/i.test(thrown.message)
  return isCycle ? 'it contains a cycle' : 'its toJSON() failed'
}

/** Whether a text that others have made is JSON that the table can hold. */
export function isStorableJson(text: unknown): text is string {
  if (typeof text !== 'string' || !isStorable(text)) return false
  try {
    const value: unknown = JSON.parse(text)
    // Others may write any character as an escape, also both halves of a pair.
    return !text.includes('\\u') || !hasUnstorableEscape(JSON.stringify(value))
  } catch {
    return false
  }
}

export function isJsonText(text: unknown): text is string {
  if (typeof text !== 'string') return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

// JSON.stringify() writes U+0000 and lone surrogates as escapes, and no other character in these ranges.
function hasUnstorableEscape(json: string): boolean {
  return json.includes('\\u') && /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f][0-9a-f]{2})/.test(json)
}

function notJson(type: string, reason: string, cause?: unknown): EventRefusedError {
  const message = `${type}: the payload cannot be stored as JSON: ${reason}`
  return new EventRefusedError('PAYLOAD_NOT_JSON', message, cause === undefined ? {} : { cause })
}
