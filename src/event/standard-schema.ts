// Standard Schema, version 1 (standardschema.dev): the interface that zod, valibot, arktype and other validators share.
// It is a few lines, so there is nothing to install for it. A validator's messages may quote the payload, so our errors
// name the places and leave the messages out.
import { EventRefusedError, withoutText } from '../errors.ts'

/** Any validator that follows Standard Schema. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

export interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** What a validator takes. */
export type InputOf<S extends StandardSchema> = TypesOf<S>['input']
/** What a validator returns: the same value, or one with defaults, coercions or transforms applied. */
export type OutputOf<S extends StandardSchema> = TypesOf<S>['output']
type TypesOf<S extends StandardSchema> = NonNullable<S['~standard']['types']>

const MOST_PLACES = 5
const LONGEST_PLACE = 200

/** Returns what the validator makes of the payload. The outbox saves that value. */
export function validatePayload(type: string, schema: StandardSchema, payload: unknown): unknown {
  const result = ask(type, schema, payload)
  if (result.issues === undefined) return result.value
  const places = [...new Set(result.issues.map((issue) => placeOf(issue?.path)))]
  if (places.length === 0) places.push(placeOf(undefined))
  const named = places.slice(0, MOST_PLACES).join(', ')
  const more = places.length > MOST_PLACES ? ` and ${places.length - MOST_PLACES} more` : ''
  throw new EventRefusedError(
    'PAYLOAD_INVALID',
    `${type}: the payload does not match its schema at ${named}${more}; correct the payload or the schema`,
  )
}

export function isStandardSchema(value: unknown): value is StandardSchema {
  const isHolder = typeof value === 'object' || typeof value === 'function'
  if (!isHolder || value === null) return false
  const { version, validate } = (value as Partial<StandardSchema>)['~standard'] ?? {}
  return version === 1 && typeof validate === 'function'
}

function ask(type: string, schema: StandardSchema, payload: unknown): StandardResult<unknown> {
  let result: StandardResult<unknown> | Promise<unknown>
  try {
    result = schema['~standard'].validate(payload)
  } catch (thrown) {
    const cause = withoutText(thrown)
    throw failed(`${type}: its schema threw ${cause.name}; fix the schema`, { cause })
  }
  if (typeof (result as Partial<Promise<unknown>> | undefined)?.then === 'function') {
    // The result is never awaited, and an unhandled rejection would end the process.
    void Promise.resolve(result).catch(() => {})
    throw failed(
      `${type}: its schema returned a promise, which emit() cannot await; remove async checks and transforms ` +
        'from it, and look for one that throws, because zod then returns a promise too',
    )
  }
  const { issues } = (result ?? {}) as { issues?: unknown }
  const isAnswer = Array.isArray(issues) || (issues === undefined && Object(result) === result)
  if (isAnswer) return result as StandardResult<unknown>
  throw failed(`${type}: its schema did not return a Standard Schema result; fix the schema`)
}

function placeOf(path: StandardIssue['path']): string {
  const text = Array.isArray(path) ? Array.from(path, step).join('') : ''
  if (text === '') return 'the payload itself'
  const place = text.startsWith('.') ? text.slice(1) : text
  return `'${place.length > LONGEST_PLACE ? `${place.slice(0, LONGEST_PLACE)}...` : place}'`
}

/** The segment of a path as text. Validators also put keys of a Map here, which may be anything. */
function step(segment: unknown): string {
  const isHolder = typeof segment === 'object' && segment !== null
  const key = isHolder ? (segment as { key?: unknown }).key : segment
  if (typeof key === 'number') return `[${key}]`
  if (typeof key !== 'string') return '[?]'
  return /^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`
}

function failed(message: string, options?: { cause: Error }): EventRefusedError {
  return new EventRefusedError('SCHEMA_FAILED', message, options)
}
