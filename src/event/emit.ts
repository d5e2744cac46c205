// What emit() takes, with or without a catalog, and how it turns that into events that are ready to be saved. A
// declaration adds what it knows about its type; the checks in prepare.ts are the same for all events.
import {
  type AnyDeclaration,
  type EmittedPayload,
  type EventCatalog,
  type EventName,
  versionOf,
} from './catalog.ts'
import { EventRefusedError, withoutText } from '../errors.ts'
import type { AggregateId, EventDetails, NewEvent, PreparedEvent } from './event.ts'
import {
  type EventRules,
  prepareEvent,
  refuse,
  requireHeaders,
  requireObject,
  requireText,
} from './prepare.ts'
import { validatePayload } from './standard-schema.ts'
import { suggest } from '../checks/checks.ts'

/** Emits one event, or many, into the unit of work. Returns their ids. */
export interface Emit {
  // The compiler explains a mistake with the last overload, which is the one that most calls mean.
  (events: readonly NewEvent[]): string[]
  (event: NewEvent): string
}

/** emit() for the events of a catalog. */
export interface CatalogEmit<TEvents extends EventCatalog> {
  (events: readonly CatalogEvent<TEvents>[]): string[]
  (event: CatalogEvent<TEvents>): string
  // `keyof TEvents & string` is spelled out, so that the compiler lists the names in its error for a wrong one.
  <Name extends keyof TEvents & string>(
    type: Name,
    payload: EmittedPayload<TEvents, Name>,
    details?: EventDetails,
  ): string
}

/** An event of the catalog as one object. Its type determines its payload. */
export type CatalogEvent<TEvents extends EventCatalog> = {
  [Name in EventName<TEvents>]: EventDetails & {
    type: Name
    payload: EmittedPayload<TEvents, Name>
  }
}[EventName<TEvents>]

/** The emit() of an outbox that was created with this `events` option. */
export type EmitOf<TEvents extends EventCatalog | undefined> = [TEvents] extends [EventCatalog]
  ? CatalogEmit<TEvents>
  : Emit

/** emitIn(): as emit(), but into the given transaction. */
export interface EmitIn<TTx> {
  (tx: TTx, events: readonly NewEvent[]): Promise<string[]>
  (tx: TTx, event: NewEvent): Promise<string>
}

/** emitIn() for the events of a catalog. */
export interface CatalogEmitIn<TTx, TEvents extends EventCatalog> {
  (tx: TTx, events: readonly CatalogEvent<TEvents>[]): Promise<string[]>
  (tx: TTx, event: CatalogEvent<TEvents>): Promise<string>
  <Name extends keyof TEvents & string>(
    tx: TTx,
    type: Name,
    payload: EmittedPayload<TEvents, Name>,
    details?: EventDetails,
  ): Promise<string>
}

/** The emitIn() of an outbox that was created with this `events` option. */
export type EmitInOf<TTx, TEvents extends EventCatalog | undefined> = [TEvents] extends [
  EventCatalog,
]
  ? CatalogEmitIn<TTx, TEvents>
  : EmitIn<TTx>

/** One event or an array of events, or the name, payload and details of one event. */
export type EmitArguments = readonly [first: unknown, payload?: unknown, details?: unknown]

export interface EmitRules extends EventRules {
  readonly catalog: EventCatalog | null
}

export function prepareEmitted(
  [first, payload, details]: EmitArguments,
  rules: EmitRules,
): PreparedEvent[] {
  const { catalog } = rules
  if (typeof first === 'string' && catalog) {
    return [prepareDeclared(catalog, first, payload, details ?? {}, rules)]
  }
  const events: unknown[] = Array.isArray(first) ? first : [first]
  return events.map((event) => {
    if (!catalog) return prepareEvent(event as NewEvent, rules)
    const { type, payload: own, ...rest } = requireObject(event) as Partial<NewEvent>
    return prepareDeclared(catalog, type, own, rest, rules)
  })
}

/** Fields that the name, the payload and the declaration already determine. */
const NOT_DETAILS = ['type', 'payload', 'aggregateType', 'aggregateId']

function prepareDeclared(
  catalog: EventCatalog,
  name: unknown,
  given: unknown,
  details: unknown,
  rules: EventRules,
): PreparedEvent {
  const type = requireText('type', name, 255)
  const declaration = catalog[type]
  if (!declaration) {
    throw new EventRefusedError(
      'EVENT_UNKNOWN',
      `the catalog has no event '${type}'; ${suggest(type, Object.keys(catalog))}`,
    )
  }
  if (typeof details !== 'object' || details === null) {
    throw refuse(`${type}: details must be an object, got ${typeof details}`)
  }
  const twice = NOT_DETAILS.find((field) => field in details)
  if (twice) {
    throw refuse(
      `${type}: '${twice}' cannot be a detail, because emit() already knows it; remove it`,
    )
  }
  const { schema, aggregate } = declaration
  const payload = schema ? validatePayload(type, schema, given) : given
  const declared = {
    ...withDefaults(type, declaration, details),
    type,
    aggregateType: aggregate,
    aggregateId: keyOf(type, declaration, payload),
    payload,
  }
  return prepareEvent(declared, rules, versionOf(declaration))
}

function withDefaults(
  type: string,
  declaration: AnyDeclaration,
  details: EventDetails,
): EventDetails {
  return {
    ...details,
    topic: details.topic ?? declaration.topic,
    maxAttempts: details.maxAttempts ?? declaration.maxAttempts,
    headers: { ...declaration.headers, ...requireHeaders(type, details.headers) },
  } as EventDetails
}

function keyOf(type: string, declaration: AnyDeclaration, payload: unknown): AggregateId {
  let key: unknown
  try {
    key = declaration.key(payload as never)
  } catch (thrown) {
    const cause = withoutText(thrown)
    throw refuse(`${type}: key() threw ${cause.name}; does the payload match its declaration?`, {
      cause,
    })
  }
  if (['string', 'number', 'bigint'].includes(typeof key)) return key as AggregateId
  const got = key === null ? 'null' : typeof key
  throw refuse(
    `${type}: key() must return a string, a whole number or a BigInt, got ${got}; does the payload match its declaration?`,
  )
}
