// Which event a message is, in whatever form it travels: metadata in headers, a JSON envelope, CloudEvents in headers
// or as the body. What identifies the event is read at once, and refused if it is not certain; all else when asked for.
import { UnreadableMessageError } from '../errors.ts'
import { isStorable } from '../payload.ts'
import {
  type InboxMessage,
  isObject,
  isPlain,
  type OpenedMessage,
  openMessage,
  textOf,
} from './message.ts'

/** An event as the inbox read it from a message. What the message does not say is null. */
export interface InboxEvent<Type = string | null, Payload = unknown> {
  readonly id: string
  readonly type: Type
  readonly aggregateType: string | null
  readonly aggregateId: string | null
  /** The order of saving, ascending within an aggregate. */
  readonly seq: number | null
  readonly occurredAt: Date | null
  readonly version: string | null
  readonly correlationId: string | null
  readonly traceparent: string | null
  /** All headers of the message that are text. */
  readonly headers: Readonly<Record<string, string>>
  /** Parsed when it is asked for; throws MESSAGE_UNREADABLE if it is not JSON. */
  readonly payload: Payload
}

type Field = Exclude<keyof InboxEvent, 'headers' | 'payload'>

/** Where each field stands: header, CloudEvents attribute; in an envelope it has its own name. */
const HEADERS: Readonly<Record<Field, string>> = {
  id: 'event-id',
  type: 'event-type',
  aggregateType: 'aggregate-type',
  aggregateId: 'aggregate-id',
  seq: 'event-seq',
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
  occurredAt: 'time',
  version: 'dataversion',
  correlationId: 'correlationid',
  traceparent: 'traceparent',
}

/** CloudEvents on Kafka, and both spellings on AMQP. */
const PREFIXES = ['ce_', 'cloudevents:', 'cloudevents_']

/** An object without all of these is no envelope: the `id` of some other body would name a thing, not an event. */
const ENVELOPE_KEYS = ['id', 'type', 'seq', 'aggregateType', 'aggregateId', 'occurredAt', 'payload']

const MAX_ID_BYTES = 255
const NO_ID =
  'the message has no event id: no header event-id, ce_id or cloudEvents:id, no JSON envelope or CloudEvent as its body, no messageId; name it yourself: once({ id }, ...)'

interface Source {
  readonly field: (field: Field) => unknown
  readonly payload: () => unknown
  readonly headers: Readonly<Record<string, string>>
}

export function readEvent(message: InboxMessage): InboxEvent {
  const source = isPlain(message) ? plainSource(message) : brokerSource(openMessage(message))
  return new ReadEvent(source)
}

/** A class, so that whoever logs an event does not log its payload: only fields of the object itself are printed. */
class ReadEvent implements InboxEvent {
  readonly id: string
  readonly type: string | null
  readonly aggregateType: string | null
  readonly aggregateId: string | null
  readonly seq: number | null
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
    this.seq = toSeq(text('seq'))
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
  // An event that a handler got has these among its headers.
  const beside = (name: Field) => (BESIDE.has(name) ? headers[HEADERS[name]] : undefined)
  return {
    headers,
    field: (name) => fields[name] ?? beside(name),
    payload: () => fields['payload'],
  }
}

const BESIDE = new Set<Field>(['version', 'correlationId', 'traceparent'])

// The first that has an id decides about all fields: nothing is put together from two sources.
function brokerSource(message: OpenedMessage): Source {
  const { headers: all, body, contentType } = message
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

function requireId(value: unknown): string {
  if (value === undefined || value === null) throw new UnreadableMessageError(NO_ID)
  const id = textOf(value)
  if (id !== undefined && id !== '' && isStorable(id) && Buffer.byteLength(id) <= MAX_ID_BYTES) {
    return id
  }
  throw new UnreadableMessageError(
    `the event id must be one text of 1 to ${MAX_ID_BYTES} bytes, without U+0000 and in UTF-8, which this message's is not; name it yourself: once({ id }, ...)`,
  )
}

/** Of a header that comes several times, all have to say the same. */
function only(values: readonly unknown[] | undefined): unknown {
  if (values === undefined) return undefined
  const texts = new Set(values.map(textOf))
  return texts.size === 1 ? ([...texts][0] ?? UNREADABLE) : UNREADABLE
}

/** What stands there and is no text: other than nothing, so that an id that cannot be read is not looked past. */
const UNREADABLE = Symbol('unreadable')

/** CloudEvents pads sequences with zeros, so that they sort as text. */
function toSeq(text: string | null): number | null {
  if (text === null || !/^\d{1,32}$/.test(text)) return null
  const seq = Number(text)
  return Number.isSafeInteger(seq) ? seq : null
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
  // No prototype: a header called 'constructor' is found only if it came.
  return Object.freeze(Object.assign(Object.create(null), Object.fromEntries(texts)))
}

function isEnvelope(body: unknown): body is Record<string, unknown> {
  return isObject(body) && ENVELOPE_KEYS.every((key) => Object.hasOwn(body, key))
}

/** A large body is not parsed for an envelope that it cannot be. */
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

// Without the parser's own error, which quotes the text.
function requireJson(body: unknown): unknown {
  // Kafka's mark for a key that was deleted.
  if (body === null) return null
  const parsed = parseJson(body)
  if (parsed !== undefined) return parsed
  throw new UnreadableMessageError(
    'the body of the message is not JSON; read it from the message instead of event.payload',
  )
}
