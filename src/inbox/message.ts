// Messages as clients deliver them: a kafkajs message or the payload around it, an amqplib message, or a plain object.
// They are brought into one shape, from which event.ts identifies the event.
import { UnreadableMessageError } from '../errors.ts'

type HeaderValue = Uint8Array | string | readonly (Uint8Array | string)[] | undefined

/** A message of kafkajs, or of a client whose messages have the same shape. */
export interface KafkaMessageLike {
  readonly value: Uint8Array | string | null
  readonly headers?: Readonly<Record<string, HeaderValue>> | undefined
}

/** What kafkajs passes to eachMessage. */
export interface KafkaPayloadLike {
  readonly topic: string
  readonly message: KafkaMessageLike
}

/** An amqplib message. */
export interface AmqpMessageLike {
  readonly content: Uint8Array
  readonly properties: {
    readonly headers?: Readonly<Record<string, unknown>> | undefined
    readonly contentType?: unknown
    readonly messageId?: unknown
    readonly type?: unknown
  }
}

/** Anything that has an id: a webhook, an event that a handler received, a message from another broker. */
export interface PlainMessage {
  /** At most 255 bytes. */
  readonly id: string
  readonly type?: string
  readonly aggregateType?: string
  readonly aggregateId?: string | number | bigint
  readonly seq?: string | number | bigint
  /** With `order: 'aggregate'`, events of an aggregate are in order within a lane. @default one lane for all of them */
  readonly lane?: string | number | bigint
  readonly occurredAt?: Date | string
  readonly headers?: Readonly<Record<string, string>>
  readonly payload?: unknown
}

export type InboxMessage = KafkaMessageLike | KafkaPayloadLike | AmqpMessageLike | PlainMessage

/** A message of any broker, in one shape. */
export interface OpenedMessage {
  /** Values by lower-case name: brokers and bridges differ in case, and a header may occur more than once. */
  readonly headers: ReadonlyMap<string, readonly unknown[]>
  readonly body: unknown
  readonly contentType: unknown
  /** AMQP only. */
  readonly messageId?: unknown
  readonly type?: unknown
}

type Fields = Readonly<Record<string, unknown>>

/** Messages of Kafka and RabbitMQ have no `id`, so an object that has one is a plain message. */
export function isPlain(message: unknown): message is PlainMessage {
  return isObject(message) && 'id' in message
}

/** The messaging system that the message came through, and where it was sent, as far as the message shows it. */
export function originOf(message: unknown): { system: string | null; destination: string | null } {
  if (!isObject(message) || isPlain(message)) return { system: null, destination: null }
  const { fields, topic } = message
  if ('content' in message) {
    const key = isObject(fields) ? fields['routingKey'] : undefined
    return { system: 'rabbitmq', destination: typeof key === 'string' ? key : null }
  }
  return { system: 'kafka', destination: typeof topic === 'string' ? topic : null }
}

export function openMessage(message: unknown): OpenedMessage {
  if (isObject(message)) {
    if (isObject(message['properties']) && 'content' in message) {
      return openAmqp(message['content'], message['properties'])
    }
    const kafka = 'value' in message ? message : message['message']
    if (isObject(kafka) && 'value' in kafka) return openKafka(kafka)
  }
  throw new UnreadableMessageError(
    'once() takes a kafkajs message or the payload of eachMessage, an amqplib message, or an object with an id, but got something else',
  )
}

function openKafka({ value, headers }: Fields): OpenedMessage {
  const byName = groupHeaders(headers)
  return { headers: byName, body: value, contentType: byName.get('content-type')?.[0] }
}

function openAmqp(content: unknown, properties: Fields): OpenedMessage {
  const { headers, contentType, messageId, type } = properties
  return { headers: groupHeaders(headers), body: content, contentType, messageId, type }
}

function groupHeaders(headers: unknown): Map<string, unknown[]> {
  const byName = new Map<string, unknown[]>()
  if (!isObject(headers)) return byName
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || value === null) continue
    const key = name.toLowerCase()
    byName.set(key, [...(byName.get(key) ?? []), ...(Array.isArray(value) ? value : [value])])
  }
  return byName
}

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null
}

// Fatal: otherwise invalid bytes would become replacement characters, and two different ids could become the same.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Returns the value as text, or undefined if it is not text. Whole numbers count as text, because AMQP has them. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) return String(value)
  if (!(value instanceof Uint8Array)) return undefined
  try {
    return utf8.decode(value)
  } catch {
    return undefined
  }
}
