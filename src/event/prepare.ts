// The checks behind emit(). An event that passes can be stored and sent as it is. Any other is refused inside the
// transaction, so nothing is half saved.
import { suggest } from '../checks/checks.ts'
import { show } from '../checks/duration.ts'
import { isStorable } from '../checks/storable.ts'
import { EventRefusedError } from '../errors.ts'
import { newEventId } from './event-id.ts'
import type { EventRef, NewEvent, PreparedEvent } from './event.ts'
import { scheduleOf } from './schedule.ts'
import type { PayloadHooks } from './stored-payload.ts'
import { laneOf, type OrderScopes } from './lane.ts'
import { encodePayload } from './payload.ts'
import { topicByRule, type TopicRule, unroutedError } from './topic.ts'

/** The options that prepareEvent() needs. */
export interface EventRules {
  readonly topic: TopicRule
  /** The topics that have a publisher; null if every topic has one. */
  readonly routedTopics: ReadonlySet<string> | null
  /** null if no order is kept. */
  readonly orderScopes: OrderScopes | null
  /** Who sends the events: this library, or a connector that reads them from the log of the database. */
  readonly relay?: 'outbox' | 'cdc'
  readonly maxPayloadBytes: number
  /** What is stored instead of payloads; null: they themselves. */
  readonly payloads?: PayloadHooks | null
  readonly maxAttempts: number
  readonly maxAttemptsByType: Readonly<Record<string, number>>
  /** Adds the trace context of the request to the headers. null: no telemetry. */
  readonly telemetry?: {
    create(event: EventRef, headers: PreparedEvent['headers']): PreparedEvent['headers']
  } | null
}

const FIELDS = new Set([
  'type',
  'aggregateType',
  'aggregateId',
  'payload',
  'topic',
  'correlationId',
  'traceparent',
  'headers',
  'occurredAt',
  'maxAttempts',
  'deliverAt',
  'deliverAfter',
])

/** The outbox sets these from the event itself, so the application cannot use these names for its own headers. */
const RESERVED_HEADERS = new Set([
  'event-id',
  'event-type',
  'event-seq',
  'event-lane',
  'event-version',
  'event-headers',
  'aggregate-type',
  'aggregate-id',
  'occurred-at',
  'correlation-id',
  'traceparent',
])

/** `version` is the version that a catalog declares for the type. */
export function prepareEvent(event: NewEvent, rules: EventRules, version?: string): PreparedEvent {
  requireObject(event)
  const type = requireText('type', event.type, 255)
  for (const key of Object.keys(event)) {
    if (!FIELDS.has(key))
      throw refuse(`${type}: an event has no field '${key}'; ${suggest(key, [...FIELDS])}`)
  }
  const aggregateType = requireText(`${type}: aggregateType`, event.aggregateType, 255)
  const topic = requireText(`${type}: topic`, event.topic ?? topicByRule(event, rules.topic), 255)
  const { routedTopics } = rules
  if (routedTopics && !routedTopics.has(topic)) throw unroutedError(event, topic, routedTopics)
  const payload = encodePayload(type, event.payload)
  const headers = collectHeaders(type, event, version)
  // Otherwise what counts is what write() makes of it.
  if (!rules.payloads?.write) requireSize(type, payload, headers, rules.maxPayloadBytes)
  const aggregateId = requireText(`${type}: aggregateId`, keyText(type, event.aggregateId), 512)
  const id = newEventId()
  const maxAttempts = attemptsFor(type, event, rules)
  const occurredAt = optionalDate(event.occurredAt)
  const schedule = scheduleOf(type, event)
  if (schedule && rules.relay === 'cdc') {
    throw refuse(
      `${type}: relay: 'cdc' sends every event when it commits, so it cannot be scheduled; emit it without deliverAt and deliverAfter, or from an outbox with a table of its own that relays by itself`,
    )
  }
  // Scheduled events wait for no other, and no other waits for them.
  const orderScopes = schedule ? null : rules.orderScopes
  return {
    id,
    type,
    aggregateType,
    aggregateId,
    topic,
    lane: laneOf({ id, topic, aggregateType, aggregateId }, orderScopes),
    payload,
    // After all checks: nothing is traced that was refused, and nothing is refused because it is traced.
    headers: rules.telemetry
      ? rules.telemetry.create({ id, type, aggregateType, aggregateId, topic }, headers)
      : headers,
    occurredAt,
    maxAttempts,
    ...(schedule && { schedule }),
  }
}

export function requireSize(
  type: string,
  payload: string,
  headers: PreparedEvent['headers'],
  maxPayloadBytes: number,
): void {
  const bytes = Buffer.byteLength(payload) + Buffer.byteLength(JSON.stringify(headers))
  if (bytes <= maxPayloadBytes) return
  throw new EventRefusedError(
    'PAYLOAD_TOO_LARGE',
    `${type}: payload and headers take ${bytes} bytes, more than maxPayloadBytes (${maxPayloadBytes}); ` +
      'store the bulk elsewhere and emit a reference, or raise maxPayloadBytes together with the limit of the broker',
  )
}

function attemptsFor(type: string, event: NewEvent, rules: EventRules): number {
  const attempts = event.maxAttempts ?? rules.maxAttemptsByType[type] ?? rules.maxAttempts
  if (Number.isInteger(attempts) && attempts >= 1 && attempts <= 1_000_000) return attempts
  throw refuse(
    `${type}: maxAttempts must be a whole number from 1 to 1000000, got ${show(attempts)}`,
  )
}

function keyText(type: string, id: unknown): unknown {
  if (typeof id === 'bigint') return String(id)
  if (typeof id === 'string' || Number.isSafeInteger(id)) return String(id)
  throw refuse(`${type}: aggregateId must be a string, a BigInt or a safe integer, got ${show(id)}`)
}

export function requireText(field: string, value: unknown, maxBytes: number): string {
  if (typeof value !== 'string' || value === '') {
    const got = value === '' ? "''" : value === null ? 'null' : typeof value
    throw refuse(`${field} must be a non-empty string, got ${got}`)
  }
  if (!isStorable(value)) {
    throw refuse(
      `${field} contains U+0000 or a lone surrogate, which Postgres cannot store; remove it`,
    )
  }
  const bytes = Buffer.byteLength(value)
  if (bytes > maxBytes) {
    throw refuse(`${field} takes ${bytes} bytes, more than the ${maxBytes} allowed; shorten it`)
  }
  return value
}

function optionalDate(value: Date | undefined): Date | null {
  if (value === undefined) return null
  if (value instanceof Date && !Number.isNaN(value.getTime())) return value
  throw refuse('occurredAt must be a valid Date')
}

function collectHeaders(
  type: string,
  event: NewEvent,
  version: string | undefined,
): Record<string, string> {
  const headers = Object.entries(requireHeaders(type, event.headers)).map(([name, value]) => {
    if (RESERVED_HEADERS.has(name.toLowerCase())) {
      throw refuse(
        `${type}: the header '${name}' is set by the outbox itself; use another name` +
          ' (correlationId and traceparent are fields of the event)',
      )
    }
    // A kafkajs consumer mistakes a name that every object inherits for a header that arrived twice.
    if (name in Object.prototype) {
      throw refuse(`${type}: consumers cannot read a header called '${name}'; use another name`)
    }
    return [requireText('a header name', name, 255), requireHeaderValue(name, value)]
  })
  const { correlationId, traceparent } = event
  if (correlationId !== undefined) {
    headers.push(['correlation-id', requireHeaderValue('correlation-id', correlationId)])
  }
  if (traceparent !== undefined) {
    headers.push(['traceparent', requireTraceparent(type, traceparent)])
  }
  if (version !== undefined) {
    headers.push(['event-version', requireHeaderValue('event-version', version)])
  }
  return Object.fromEntries(headers) as Record<string, string>
}

// W3C trace context: version, trace id, parent id and flags, in lower-case hex. Ids of zeros and the version ff are
// invalid; versions after 00 may add fields. A consumer's tracer would silently ignore anything else.
const TRACEPARENT =
  /^(?:00-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}|(?!00|ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-[\x20-\x7e]*)?)$/

function requireTraceparent(type: string, value: unknown): string {
  if (typeof value === 'string' && TRACEPARENT.test(value)) return value
  throw refuse(
    `${type}: traceparent must be a W3C trace context such as '00-<32 hex digits>-<16 hex digits>-01'; pass the one of your tracer, or leave it out`,
  )
}

/** Returns the headers if they are an object. A string or a list would become headers called 0, 1, 2. */
export function requireHeaders(type: string, headers: unknown = {}): Record<string, unknown> {
  if (typeof headers === 'object' && headers !== null && !Array.isArray(headers)) {
    return headers as Record<string, unknown>
  }
  throw refuse(`${type}: headers must be an object of strings by name, got ${show(headers)}`)
}

function requireHeaderValue(name: string, value: unknown): string {
  if (typeof value === 'string' && isStorable(value)) return value
  throw refuse(`the header '${name}' must be a string without U+0000 or lone surrogates`)
}

export function requireObject(event: unknown): object {
  if (typeof event === 'object' && event !== null) return event
  const got = event === null ? 'null' : typeof event
  const remedy =
    typeof event === 'string'
      ? '; to emit by name, set the option events and call emit(name, payload)'
      : ''
  throw refuse(`emit() takes an event object or an array of them, got ${got}${remedy}`)
}

export function refuse(message: string, options?: { cause: unknown }): EventRefusedError {
  return new EventRefusedError('EVENT_INVALID', message, options)
}
