// The typed catalog: declares once which events exist. A declaration holds what all events of a type have in common.
// defineEvents() rejects what could not be saved or sent, so the mistake shows at startup and not at the first emit().
import { show } from '../checks/duration.ts'
import { EventRefusedError, OutboxOptionsError } from '../errors.ts'
import type { AggregateId } from './event.ts'
import type { AsJson, HasBigint } from './payload.ts'
import { prepareEvent } from './prepare.ts'
import {
  type InputOf,
  isStandardSchema,
  type OutputOf,
  type StandardSchema,
} from './standard-schema.ts'
import { rejectUnknown } from '../checks/checks.ts'

/** What all events of a type have in common. */
interface EventDefaults {
  /** The type of the aggregate: `order`. At most 255 bytes. */
  readonly aggregate: string
  /** The topic of the events. @default from the option `topic`, else `aggregate` */
  readonly topic?: string
  /** Headers of every event. A header of the same name at emit takes precedence. */
  readonly headers?: Readonly<Record<string, string>>
  /** How many times a failing event is tried. @default the options `maxAttemptsByType`, `maxAttempts` */
  readonly maxAttempts?: number
  /** The version of the payload, sent as the header `event-version`. @default no such header */
  readonly version?: number | string
}

/** An event whose payload only the compiler checks. */
export interface PlainEvent<Payload> extends EventDefaults {
  /** Returns the id of the aggregate, which becomes the message key. At most 512 bytes. */
  readonly key: (payload: Payload) => AggregateId
}

/** An event whose payload is also validated at emit. */
export interface SchemaEvent<Schema extends StandardSchema> extends EventDefaults {
  /** A zod, valibot or arktype schema, or any other Standard Schema. The outbox saves the value that it returns. */
  readonly schema: Schema
  /** Returns the id of the aggregate from the validated payload. It becomes the message key. At most 512 bytes. */
  readonly key: (payload: OutputOf<Schema>) => AggregateId
}

/** What event() returns. `~types` exists only for the compiler. */
export interface EventDeclaration<Input, Output> extends AnyDeclaration {
  readonly key: (payload: Output) => AggregateId
  readonly '~types'?: { readonly input: Input; readonly output: Output }
}

export interface AnyDeclaration extends EventDefaults {
  readonly schema?: StandardSchema
  readonly key: (payload: never) => AggregateId
  readonly '~types'?: { readonly input: unknown; readonly output: unknown }
}

/** Declarations by event name: what defineEvents() takes and returns. */
export type EventCatalog = Readonly<Record<string, AnyDeclaration>>

export type EventName<TEvents extends EventCatalog> = keyof TEvents & string

/** What event<Payload>() returns. Without a schema nothing turns a bigint into a JSON value. */
export interface PlainDeclaration<Payload> extends EventDeclaration<Payload, Payload> {
  readonly '~plain'?: true
}

/** Replaces a bigint in a payload type, which emit() would refuse. */
interface BigintRefused {
  readonly 'JSON has no bigint: declare it as a string': never
}

/** The payload of an event as emit() takes it. */
export type EmittedPayload<
  TEvents extends EventCatalog,
  Name extends EventName<TEvents>,
> = TEvents[Name] extends { readonly '~plain'?: true }
  ? true extends HasBigint<Declared<TEvents, Name>>
    ? BigintRefused
    : Declared<TEvents, Name>
  : Declared<TEvents, Name>

type Declared<TEvents extends EventCatalog, Name extends EventName<TEvents>> = NonNullable<
  TEvents[Name]['~types']
>['input']

/** The payload of an event as handlers and consumers receive it: the saved payload, parsed from JSON. */
export type ReceivedPayload<TEvents extends EventCatalog, Name extends EventName<TEvents>> = AsJson<
  NonNullable<TEvents[Name]['~types']>['output']
>

const KNOWN = ['aggregate', 'key', 'schema', 'topic', 'headers', 'maxAttempts', 'version']

/**
 * Declares an event: `event<Payload>({ aggregate, key })` is checked by the compiler only, `event({ schema, aggregate,
 * key })` also by a validator. defineEvents() names the event and checks the declaration.
 */
export function event<Schema extends StandardSchema>(
  declaration: SchemaEvent<Schema>,
): EventDeclaration<InputOf<Schema>, OutputOf<Schema>>
export function event<Payload>(declaration: PlainEvent<Payload>): PlainDeclaration<Payload>
export function event(declaration: AnyDeclaration): AnyDeclaration {
  return declaration
}

/** Names the events of an application, for createOutbox({ events }). Throws if a declaration cannot work. */
export function defineEvents<TEvents extends EventCatalog>(events: TEvents): TEvents {
  if (typeof events !== 'object' || events === null) {
    throw new OutboxOptionsError(
      `events must be an object of declarations by event name, as defineEvents() returns it, got ${show(events)}`,
    )
  }
  const entries = Object.entries(events).map(([name, declaration]) => {
    checkDeclaration(name, declaration)
    return [name, freeze(declaration)] as const
  })
  if (entries.length === 0) {
    throw new OutboxOptionsError(
      'events declares nothing; declare an event: defineEvents({ OrderPlaced: event<Order>({ aggregate, key }) })',
    )
  }
  // No prototype: an event called 'constructor' must not be found unless it is declared.
  return Object.freeze(Object.assign(Object.create(null), Object.fromEntries(entries)) as TEvents)
}

/** The version as the header carries it. */
export function versionOf({ version }: AnyDeclaration): string | undefined {
  return version === undefined ? undefined : String(version)
}

function checkDeclaration(name: string, declaration: AnyDeclaration): void {
  const owner = `the event '${name}'`
  rejectUnknown(owner, declaration, KNOWN)
  const { aggregate, key, schema, topic, headers, maxAttempts, version } = declaration
  if (typeof aggregate !== 'string' || aggregate === '') {
    throw new OutboxOptionsError(
      `${owner} needs aggregate, the type of the aggregate, such as 'order', got ${show(aggregate)}`,
    )
  }
  if (typeof key !== 'function') {
    throw new OutboxOptionsError(
      `${owner} needs key, a function that returns the id of the aggregate, such as (payload) => payload.orderId, got ${show(key)}`,
    )
  }
  if (schema !== undefined && !isStandardSchema(schema)) {
    throw new OutboxOptionsError(
      `schema of ${owner} must be a Standard Schema validator (zod 3.24, valibot 1, arktype 2, or later), got ${show(schema)}`,
    )
  }
  if (version !== undefined && !isVersion(version)) {
    throw new OutboxOptionsError(
      `version of ${owner} must be a whole number or a non-empty string, got ${show(version)}`,
    )
  }
  // The remaining fields have to pass the same checks as an emitted event.
  const sample = { type: name, aggregateType: aggregate, aggregateId: 1, payload: null }
  const given = { topic, headers, maxAttempts }
  const rules = {
    topic: undefined,
    routedTopics: null,
    orderScopes: null,
    maxPayloadBytes: Number.POSITIVE_INFINITY,
    maxAttempts: 1,
    maxAttemptsByType: {},
  }
  try {
    prepareEvent({ ...sample, ...(given as EventDefaults) }, rules, versionOf(declaration))
  } catch (refusal) {
    if (!(refusal instanceof EventRefusedError)) throw refusal
    throw new OutboxOptionsError(`${owner} could not be emitted: ${refusal.message}`)
  }
}

function isVersion(version: unknown): boolean {
  return typeof version === 'string' ? version !== '' : Number.isSafeInteger(version)
}

function freeze(declaration: AnyDeclaration): AnyDeclaration {
  const { headers } = declaration
  return Object.freeze({
    ...declaration,
    ...(headers && { headers: Object.freeze({ ...headers }) }),
  })
}
