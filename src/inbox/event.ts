// Identifies the event in a message, in every format: metadata in headers, a JSON envelope, or CloudEvents in headers
// or as the body. The metadata is read at once, and a message without an unambiguous id is refused. The payload is read
// on first access. Longer than other files: the formats share their fields, and telling them apart is one decision.
import { UnreadableMessageError } from '../errors.ts'
import { isStorable } from '../checks/storable.ts'
import { FREE_HEADERS } from '../envelope/wire-message.ts'
import {
  type InboxMessage,
  isObject,
  isPlain,
  type OpenedMessage,
  openMessage,
  textOf,
} from './message.ts'

/** An event as the inbox reads it from a message. Fields that the message does not have are null. */
export interface InboxEvent<Type = string | null, Payload = unknown> {
  readonly id: string
  readonly type: Type
  readonly aggregateType: string | null
  readonly aggregateId: string | null
  /** Its place in the order of saving. Ascends within an aggregate. */
  readonly seq: number | null
  /** Events of an aggregate are in order within the same lane. */
  readonly lane: number | null
  readonly occurredAt: Date | null
  readonly version: string | null
  readonly correlationId: string | null
  readonly traceparent: string | null
  /** All headers of the message that are text. */
  readonly headers: Readonly<Record<string, string>>
  /** Parsed on first access. Throws MESSAGE_UNREADABLE if it is not JSON. */
  readonly payload: Payload
}

type Field = Exclude<keyof InboxEvent, 'headers' | 'payload'>

/** The name of each field as a header and as a CloudEvents attribute. In a JSON envelope, fields keep their names. */
const HEADERS: Readonly<Record<Field, string>> = {
  id: 'event-id',
  type: 'event-type',
  aggregateType: 'aggregate-type',
  aggregateId: 'aggregate-id',
  seq: 'event-seq',
  lane: 'event-lane',
  occurredAt: 'occurred-at',
  version: 'event-version',
  correlationId: 'correlation-id',
  traceparent: 'traceparent',
}
const ATTRIBUTES: Readonly<Record<Field, string>> = {
  id: 'id',
  type: 'type',
  aggregateType: 'aggregatetype',
  aggregateId: 'subject',
  seq: 'sequence',
  lane: 'lane',
  occurredAt: 'time',
  version: 'dataversion',
  correlationId: 'correlationid',
  traceparent: 'traceparent',
}

/** The prefixes of CloudEvents headers: one on Kafka, and two spellings on AMQP. */
const PREFIXES = ['ce_', 'cloudevents:', 'cloudevents_']

/**
 * An object without all of these is not an envelope: its `id` may identify something other than an event. The lane is
 * optional.
 */
const ENVELOPE_KEYS = ['id', 'type', 'seq', 'aggregateType', 'aggregateId', 'occurredAt', 'payload']

const MAX_ID_BYTES = 255
const NO_ID =
  'the message has no event id: there is no header event-id, ce_id or cloudEvents:id, the body is neither a JSON envelope nor a CloudEvent, and there is no messageId; pass an id yourself: once({ id }, ...)'

interface Source {
  readonly field: (field: Field) => unknown
  readonly payload: () => unknown
  readonly headers: Readonly<Record<string, string>>
}

export function readEvent(message: InboxMessage): InboxEvent {
  const source = isPlain(message) ? plainSource(message) : brokerSource(openMessage(message))
  return new ReadEvent(source)
}

/** A class, so that logging an event does not print its payload: loggers print only an object's own fields. */
class ReadEvent implements InboxEvent {
  readonly id: string
  readonly type: string | null
  readonly aggregateType: string | null
  readonly aggregateId: string | null
  readonly seq: number | null
  readonly lane: number | null
  readonly occurredAt: Date | null
  readonly version: string | null
  readonly correlationId: string | null
  readonly traceparent: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly #readPayload: () => unknown
  #payload: { readonly value: unknown } | null = null

  constructor({ field, payload, headers }: Source) {
    const text = (name: Field) => textOf(field(name)) ?? null
    this.id = requireId(field('id'))
    this.type = text('type')
    this.aggregateType = text('aggregateType')
    this.aggregateId = text('aggregateId')
    this.seq = toWhole(text('seq'))
    this.lane = toWhole(text('lane'))
    this.occurredAt = toDate(field('occurredAt'))
    this.version = text('version')
    this.correlationId = text('correlationId')
    this.traceparent = text('traceparent')
    this.headers = headers
    this.#readPayload = payload
  }

  get payload(): unknown {
    this.#payload ??= { value: this.#readPayload() }
    return this.#payload.value
  }
}

function plainSource(message: InboxMessage): Source {
  const fields = message as unknown as Record<string, unknown>
  const given = isObject(fields['headers']) ? Object.entries(fields['headers']) : []
  const headers = toHeaders(given.map(([name, value]) => [name, [value]]))
  // In an event that a handler received, these are headers.
  const beside = (name: Field) => (BESIDE.has(name) ? headers[HEADERS[name]] : undefined)
  return {
    headers,
    field: (name) => fields[name] ?? beside(name),
    payload: () => fields['payload'],
  }
}

const BESIDE = new Set<Field>(['version', 'correlationId', 'traceparent'])

// All metadata comes from one source, the first of these that applies. Fields of two sources are never combined.
function brokerSource(message: OpenedMessage): Source {
  const { body, contentType } = message
  const all = withFreeHeaders(message.headers)
  const headers = toHeaders(all)
  const fromHeaders = (nameOf: (field: Field) => string, payload: () => unknown): Source => {
    return { headers, payload, field: (field) => only(all.get(nameOf(field))) }
  }
  if (all.has(HEADERS.id)) {
    const source = fromHeaders(
      (field) => HEADERS[field],
      () => {
        const parsed = requireJson(body)
        return isEnvelope(parsed) && parsed['id'] === textOf(source.field('id'))
          ? parsed['payload']
          : parsed
      },
    )
    return source
  }
  const isStructured = /^application\/cloudevents\+json\b/i.test(textOf(contentType) ?? '')
  const event = isStructured ? parseJson(body) : undefined
  if (isObject(event)) {
    const field = (name: Field) => event[ATTRIBUTES[name]]
    return { headers, field, payload: () => event['data'] }
  }
  const prefix = PREFIXES.find((one) => all.has(`${one}id`))
  if (prefix !== undefined) {
    return fromHeaders(
      (field) => prefix + ATTRIBUTES[field],
      () => requireJson(body),
    )
  }
  const parsed = looksLikeObject(body) ? parseJson(body) : undefined
  if (isEnvelope(parsed)) {
    return { headers, field: (name) => parsed[name], payload: () => parsed['payload'] }
  }
  const { messageId: id, type } = message
  return {
    headers,
    field: (name) => (name === 'id' ? id : name === 'type' ? type : undefined),
    payload: () => requireJson(body),
  }
}

/**
 * A connector that reads the outbox table (relay: 'cdc') puts the application's headers into one, as JSON. They become headers
 * again, unless the message has a header of that name.
 */
function withFreeHeaders(all: OpenedMessage['headers']): OpenedMessage['headers'] {
  const free = all.get(FREE_HEADERS)
  const parsed = free && parseJson(free[0])
  if (!isObject(parsed) || !all.has(HEADERS.id)) return all
  const byName = new Map(
    Object.entries(parsed).map(([name, value]) => [name.toLowerCase(), [value]]),
  )
  for (const [name, values] of all) if (name !== FREE_HEADERS) byName.set(name, [...values])
  return byName
}

function requireId(value: unknown): string {
  if (value === undefined || value === null) throw new UnreadableMessageError(NO_ID)
  const id = textOf(value)
  if (id !== undefined && id !== '' && isStorable(id) && Buffer.byteLength(id) <= MAX_ID_BYTES) {
    return id
  }
  throw new UnreadableMessageError(
    `the event id of the message is invalid: it must be a single UTF-8 string of 1 to ${MAX_ID_BYTES} bytes without U+0000; pass an id yourself: once({ id }, ...)`,
  )
}

/** The value of a header. If the header occurs several times, all its values must agree. */
function only(values: readonly unknown[] | undefined): unknown {
  if (values === undefined) return undefined
  const texts = new Set(values.map(textOf))
  return texts.size === 1 ? ([...texts][0] ?? UNREADABLE) : UNREADABLE
}

/** A header that is present but has no single text. Not undefined: an unreadable id must not count as missing. */
const UNREADABLE = Symbol('unreadable')

/** In CloudEvents, sequences are padded with zeros, so that they sort as text. */
function toWhole(text: string | null): number | null {
  if (text === null || !/^\d{1,32}$/.test(text)) return null
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : null
}

function toDate(value: unknown): Date | null {
  const date = value instanceof Date ? value : new Date(textOf(value) ?? Number.NaN)
  return Number.isNaN(date.getTime()) ? null : date
}

function toHeaders(all: Iterable<readonly [string, readonly unknown[]]>): Record<string, string> {
  const texts = [...all].flatMap(([name, values]) => {
    const text = textOf(values[0])
    return text === undefined ? [] : [[name, text] as const]
  })
  // No prototype: a header called 'constructor' must not match an inherited property.
  return Object.freeze(Object.assign(Object.create(null), Object.fromEntries(texts)))
}

function isEnvelope(body: unknown): body is Record<string, unknown> {
  return isObject(body) && ENVELOPE_KEYS.every((key) => Object.hasOwn(body, key))
}

/** Avoids parsing a large body that cannot be an envelope. */
function looksLikeObject(body: unknown): boolean {
  if (typeof body === 'string') return body.startsWith('{')
  return body instanceof Uint8Array && body[0] === 0x7b
}

function parseJson(body: unknown): unknown {
  try {
    return JSON.parse(textOf(body) ?? '')
  } catch {
    return undefined
  }
}

// Leaves out the parser's error, which quotes the text.
function requireJson(body: unknown): unknown {
  // A tombstone: Kafka's marker for a deleted key.
  if (body === null) return null
  const parsed = parseJson(body)
  if (parsed !== undefined) return parsed
  throw new UnreadableMessageError(
    'the body of the message is not JSON; read it from the message instead of event.payload',
  )
}
