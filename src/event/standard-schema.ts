// Standard Schema, version 1 (standardschema.dev): the one shape that zod, valibot, arktype and others give
// their validators. It is a few lines, so nothing has to be installed for it. What a validator says of a
// payload may quote it, so an error names the places and keeps the texts to itself.
import { EventRefusedError, withoutText } from './errors.ts'

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
/** What it makes of that: the same, or with defaults filled in, coerced, transformed. */
export type OutputOf<S extends StandardSchema> = TypesOf<S>['output']
type TypesOf<S extends StandardSchema> = NonNullable<S['~standard']['types']>

const MOST_PLACES = 5
const LONGEST_PLACE = 200

/** Answers what the validator makes of the payload, which is what is saved. */
export function validatePayload(type: string, schema: StandardSchema, payload: unknown): unknown {
  const result = ask(type, schema, payload)
  if (result.issues === undefined) return result.value
  const places = [...new Set(result.issues.map((issue) => placeOf(issue?.path)))]
  if (places.length === 0) places.push(placeOf(undefined))
  const named = places.slice(0, MOST_PLACES).join(', ')
  const more = places.length > MOST_PLACES ? ` and ${places.length - MOST_PLACES} more` : ''
  throw new EventRefusedError(
    'PAYLOAD_INVALID',
    `${type}: the payload does not fit its schema at ${named}${more}; correct what is emitted, or the schema`,
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
    throw failed(`${type}: its schema threw ${cause.name}; mend the schema`, { cause })
  }
  if (typeof (result as Partial<Promise<unknown>> | undefined)?.then === 'function') {
    // Nobody waits for its answer, and a rejection that nobody hears would end the process.
    void Promise.resolve(result).catch(() => {})
    throw failed(
      `${type}: its schema answered with a promise, and emit() cannot wait; keep async checks and transforms ` +
        'out of it, and look for one that throws, to which zod answers in this way too',
    )
  }
  const { issues } = (result ?? {}) as { issues?: unknown }
  const isAnswer = Array.isArray(issues) || (issues === undefined && Object(result) === result)
  if (isAnswer) return result as StandardResult<unknown>
  throw failed(`${type}: its schema did not answer as Standard Schema says; mend the schema`)
}

function placeOf(path: StandardIssue['path']): string {
  const text = Array.isArray(path) ? Array.from(path, step).join('') : ''
  if (text === '') return 'the payload itself'
  const place = text.startsWith('.') ? text.slice(1) : text
  return `'${place.length > LONGEST_PLACE ? `${place.slice(0, LONGEST_PLACE)}...` : place}'`
}

/** Validators also put keys of a Map here, which may be anything. */
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
