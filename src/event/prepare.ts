// The vocabulary: what a user emits, what is saved, what a publisher gets.
// prepareEvent() is the gate. What passes it can be stored and sent as it is; what does not is
// refused inside the transaction, so nothing is half saved.
import { show } from './duration.ts'
import { EventRefusedError } from './errors.ts'
import { newEventId } from './event-id.ts'
import { encodePayload, isStorable } from './payload.ts'
import { requireRoute, topicByRule, type TopicRule } from './topics.ts'
import { suggest } from './validate.ts'

/** Numbers have to be whole and exact; they are written as text. */
export type AggregateId = string | number | bigint

/** What an event may say besides what happened to what. */
export interface EventDetails {
  /** Where it goes. @default what its declaration or the option `topic` says, else the aggregate type */
  topic?: string
  /** Ties the events of one request together; travels as the header `correlation-id`. */
  correlationId?: string
  /** W3C trace context; travels as the header `traceparent`. */
  traceparent?: string
  /** Further headers, text only. */
  headers?: Readonly<Record<string, string>>
  /** When it happened, if not now. @default the database's clock at the moment of saving */
  occurredAt?: Date
  /** How often a failing event is tried. @default its declaration, `maxAttemptsByType`, `maxAttempts` */
  maxAttempts?: number
}

/** A domain event as the application emits it, without a catalog. */
export interface NewEvent extends EventDetails {
  /** What happened, in the past tense: `OrderCompleted`. At most 255 bytes. */
  type: string
  /** The kind of thing it happened to: `order`. At most 255 bytes. */
  aggregateType: string
  /** Which one. It becomes the message key: one aggregate, one partition, in order. At most 512 bytes. */
  aggregateId: AggregateId
  /** Anything JSON can say exactly; see docs/guides/payloads.md for what is refused. */
  payload: unknown
}

/** What identifies an event in logs and lifecycle events. Never holds the payload. */
export interface EventRef {
  readonly id: string
  readonly type: string
  readonly aggregateType: string
  readonly aggregateId: string
  readonly topic: string
}

/** An event that passed the gate and waits for the end of its unit of work. */
export interface PreparedEvent extends EventRef {
  /** JSON text, exactly as it will be stored and sent. */
  readonly payload: string
  readonly headers: Readonly<Record<string, string>>
  readonly occurredAt: Date | null
  readonly maxAttempts: number
}

/** A saved event as a publisher gets it, from either path. */
export interface OutboxEvent extends PreparedEvent {
  /** The order of saving; events of one aggregate leave in this order. */
  readonly seq: number
  readonly occurredAt: Date
  /** Failed attempts so far. */
  readonly attempts: number
}

/** What prepareEvent() needs to know of the options. */
export interface EventRules {
  readonly topic: TopicRule
  /** The topics that have a publisher; null if all have. */
  readonly routedTopics: ReadonlySet<string> | null
  readonly maxPayloadBytes: number
  readonly maxAttempts: number
  readonly maxAttemptsByType: Readonly<Record<string, number>>
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
])

/** Set by publishers from the event itself, so a free header may not carry these names. */
const RESERVED_HEADERS = new Set([
  'event-id',
  'event-type',
  'event-seq',
  'event-version',
  'aggregate-type',
  'aggregate-id',
  'occurred-at',
  'correlation-id',
  'traceparent',
])

/** `version` is the one that a catalog declares for the type. */
export function prepareEvent(event: NewEvent, rules: EventRules, version?: string): PreparedEvent {
  requireObject(event)
  const type = requireText('type', event.type, 255)
  for (const key of Object.keys(event)) {
    if (!FIELDS.has(key))
      throw refuse(`${type}: an event has no field '${key}'; ${suggest(key, [...FIELDS])}`)
  }
  const aggregateType = requireText(`${type}: aggregateType`, event.aggregateType, 255)
  const topic = requireText(`${type}: topic`, event.topic ?? topicByRule(event, rules.topic), 255)
  requireRoute(event, topic, rules.routedTopics)
  const payload = encodePayload(type, event.payload)
  const headers = collectHeaders(type, event, version)
  const bytes = Buffer.byteLength(payload) + Buffer.byteLength(JSON.stringify(headers))
  if (bytes > rules.maxPayloadBytes) {
    throw new EventRefusedError(
      'PAYLOAD_TOO_LARGE',
      `${type}: payload and headers take ${bytes} bytes, more than maxPayloadBytes (${rules.maxPayloadBytes}); ` +
        'store the bulk elsewhere and emit a reference, or raise maxPayloadBytes together with the limit of the broker',
    )
  }
  return {
    id: newEventId(),
    type,
    aggregateType,
    aggregateId: requireText(`${type}: aggregateId`, keyText(type, event.aggregateId), 512),
    topic,
    payload,
    headers,
    occurredAt: optionalDate(event.occurredAt),
    maxAttempts: attemptsFor(type, event, rules),
  }
}

/** The key that order is kept for. U+0000, which neither can hold, keeps ('a', 'b:c') and ('a:b', 'c') apart. */
export function orderingKey({ aggregateType, aggregateId }: EventRef): string {
  return `${aggregateType}\u0000${aggregateId}`
}

/** What has to leave one after another: an aggregate, or with order given up each event for itself. */
export function laneKey(event: EventRef, inOrder: boolean): string {
  return inOrder ? orderingKey(event) : event.id
}

export function refOf({ id, type, aggregateType, aggregateId, topic }: EventRef): EventRef {
  return { id, type, aggregateType, aggregateId, topic }
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
  if (typeof id !== 'number') return id
  if (Number.isSafeInteger(id)) return String(id)
  throw refuse(`${type}: aggregateId must be a string or a whole number that is exact, got ${id}`)
}

export function requireText(field: string, value: unknown, maxBytes: number): string {
  if (typeof value !== 'string' || value === '') {
    const got = value === '' ? "''" : value === null ? 'null' : typeof value
    throw refuse(`${field} must be a non-empty string, got ${got}`)
  }
  if (!isStorable(value)) {
    throw refuse(
      `${field} holds U+0000 or a lone surrogate, which Postgres cannot store; remove it`,
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
    // kafkajs, as a consumer, takes a name that every object has for a header that came twice.
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
    headers.push(['traceparent', requireHeaderValue('traceparent', traceparent)])
  }
  if (version !== undefined) {
    headers.push(['event-version', requireHeaderValue('event-version', version)])
  }
  return Object.fromEntries(headers) as Record<string, string>
}

/** A text or a list would be taken for headers called 0, 1, 2. */
export function requireHeaders(type: string, headers: unknown = {}): Record<string, unknown> {
  if (typeof headers === 'object' && headers !== null && !Array.isArray(headers)) {
    return headers as Record<string, unknown>
  }
  throw refuse(`${type}: headers must be an object of texts by name, got ${show(headers)}`)
}

function requireHeaderValue(name: string, value: unknown): string {
  if (typeof value === 'string' && isStorable(value)) return value
  throw refuse(`the header '${name}' must be a string without U+0000 or lone surrogates`)
}

export function requireObject(event: unknown): object {
  if (typeof event === 'object' && event !== null) return event
  const remedy =
    typeof event === 'string'
      ? '; a name goes alone, as emit(name, payload), and needs the option events'
      : ''
  throw refuse(`emit() takes an event object or an array of them, got ${typeof event}${remedy}`)
}

export function refuse(message: string, options?: { cause: unknown }): EventRefusedError {
  return new EventRefusedError('EVENT_INVALID', message, options)
}
