// The payload's way into JSON: exactly, or not at all.
import { EventRefusedError } from './errors.ts'

// JSON.stringify() drops functions and symbols, turns NaN, Infinity and invalid dates into null, and a
// Map into {}: an event would say something else than what was emitted. All of these are refused.
// An undefined property is left out, which is how optional fields are meant.
export function encodePayload(type: string, payload: unknown): string {
  let text: string | undefined
  try {
    text = JSON.stringify(payload, function (this: unknown, key: string, value: unknown) {
      const lossy = lossOf(value, this, key)
      if (lossy) throw notJson(type, `'${key}' is ${lossy}`)
      return value
    })
  } catch (thrown) {
    if (thrown instanceof EventRefusedError) throw thrown
    const reason = thrown instanceof RangeError ? 'it is nested too deeply' : 'it holds a cycle'
    throw notJson(type, reason)
  }
  if (text === undefined) throw notJson(type, 'it is undefined; use null for an empty one')
  if (hasUnstorableEscape(text)) {
    throw notJson(type, 'a string in it holds U+0000 or a lone surrogate, which Postgres refuses')
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
      return Number.isFinite(value) ? undefined : `${value}, which JSON has no word for`
    case 'undefined':
      return Array.isArray(holder) ? 'undefined inside an array; use null' : undefined
    case 'object':
      if (value === null) return isInvalidDate(holder, key) ? 'an invalid date' : undefined
      if (value instanceof Map || value instanceof Set) return 'a Map or Set; spread it first'
      if (isBinary(holder, key)) return 'binary data; encode it as base64 first'
      return undefined
    default:
      return undefined
  }
}

// A replacer sees a value after its toJSON() ran; the holder still has the original.
function isInvalidDate(holder: unknown, key: string): boolean {
  return (holder as Record<string, unknown>)[key] instanceof Date
}

function isBinary(holder: unknown, key: string): boolean {
  const original = (holder as Record<string, unknown>)[key]
  return ArrayBuffer.isView(original) || original instanceof ArrayBuffer
}

// JSON.stringify() writes U+0000 and lone surrogates as escapes, and nothing else of that range.
function hasUnstorableEscape(json: string): boolean {
  return json.includes('\\u') && /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f][0-9a-f]{2})/.test(json)
}

function notJson(type: string, reason: string): EventRefusedError {
  return new EventRefusedError(
    'PAYLOAD_NOT_JSON',
    `${type}: the payload cannot be stored as JSON: ${reason}`,
  )
}

/** Postgres text holds neither U+0000 nor lone surrogates. */
export function isStorable(text: string): boolean {
  return !text.includes('\u0000') && text.isWellFormed()
}
