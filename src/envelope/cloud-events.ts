// CloudEvents 1.0, by its bindings for Kafka and AMQP. The aggregate is the subject and the partition key; what
// CloudEvents has no word for are extension attributes, whose names may hold lower case letters and digits only.
import { show } from '../duration.ts'
import { OutboxOptionsError } from '../errors.ts'
import type { OutboxEvent } from '../events.ts'
import type { PublishFailure } from '../publishers/publisher.ts'
import { rejectUnknown, requireOneOf } from '../validate.ts'
import { unwritable } from './serializer.ts'
import { splitHeaders, type WireMessage, type WireRules, withMember } from './wire-message.ts'

export interface CloudEventsOptions {
  /** Where the events come from: a URI-reference, such as `/shop/orders` or `https://shop.example/orders`. */
  source: string
  /** `'binary'`: attributes are headers, the value is the payload. `'structured'`: one JSON object. @default 'binary' */
  mode?: 'binary' | 'structured'
}

export class CloudEvents {
  readonly source: string
  readonly mode: 'binary' | 'structured'

  constructor(source: string, mode: 'binary' | 'structured') {
    this.source = source
    this.mode = mode
    Object.freeze(this)
  }
}

const URI_REFERENCE = (() => {
  const character = String.raw`[\w.~!$&'()*+,;=:@-]|%[\da-f]{2}`
  const start = String.raw`(?:[a-z][a-z\d+.-]*:|(?![^/?#]*:))`
  const authority = String.raw`(?:\/\/(?:${character}|[[\]])*(?=[/?#]|$))?`
  const rest = String.raw`(?:${character}|\/)*(?:\?(?:${character}|[/?])*)?(?:#(?:${character}|[/?])*)?`
  return new RegExp(`^${start}${authority}${rest}$`, 'i')
})()

/** For the option `envelope` of a publisher: events as CloudEvents. */
export function cloudEvents(options: CloudEventsOptions): CloudEvents {
  rejectUnknown('cloudEvents()', options, ['source', 'mode'])
  const { source, mode = 'binary' } = options
  if (typeof source !== 'string' || source === '' || !URI_REFERENCE.test(source)) {
    throw new OutboxOptionsError(
      `cloudEvents() needs source, a URI-reference that says where the events come from, such as '/shop/orders', got ${show(source)}`,
    )
  }
  return new CloudEvents(source, requireOneOf('mode', mode, ['binary', 'structured']))
}

export function writeCloudEvent(
  event: OutboxEvent,
  { source, mode }: CloudEvents,
  { attributePrefix }: WireRules,
): WireMessage | PublishFailure {
  const attributes = attributesOf(event, source)
  const broken = Object.keys(attributes).find((name) => !ALLOWED.test(attributes[name]!))
  if (broken !== undefined) {
    return unwritable(
      `'${event.type}' is no CloudEvent: its ${broken} holds a control character or a noncharacter, which CloudEvents forbids; emit it without, or use another envelope`,
    )
  }
  const headers = headersBeside(event)
  if (mode === 'structured') {
    const about = { ...attributes, datacontenttype: JSON_TYPE }
    return { value: withMember(about, 'data', event.payload), headers, contentType: EVENT_TYPE }
  }
  for (const [name, value] of Object.entries(attributes)) headers[attributePrefix + name] = value
  return { value: event.payload, headers, contentType: JSON_TYPE }
}

const JSON_TYPE = 'application/json'
const EVENT_TYPE = 'application/cloudevents+json; charset=UTF-8'

/** What an attribute may hold; lone surrogates did not pass emit. */
const ALLOWED = /^[^\p{Cc}\p{Noncharacter_Code_Point}]*$/u

/** As many as the largest number of Postgres has. CloudEvents wants sequences that sort as text. */
const SEQUENCE_DIGITS = 19

function attributesOf(event: OutboxEvent, source: string): Record<string, string> {
  const { version, correlationId, traceparent } = splitHeaders(event)
  return {
    specversion: '1.0',
    id: event.id,
    source,
    type: event.type,
    time: event.occurredAt.toISOString(),
    subject: event.aggregateId,
    aggregatetype: event.aggregateType,
    partitionkey: event.aggregateId,
    sequence: String(event.seq).padStart(SEQUENCE_DIGITS, '0'),
    // An attribute that is there may not be empty.
    ...(correlationId && { correlationid: correlationId }),
    ...(traceparent && { traceparent }),
    ...(version && { dataversion: version }),
  }
}

/**
 * What tells the modes apart, and what is an attribute by its name. Whoever hands the headers of a CloudEvent on to the
 * events that it leads to would give all of them its id.
 */
const NOT_FREE = /^(?:content-type$|ce_|cloudEvents[:_])/i

/** The user's own, and the trace context, which tracing tools look for under this name. */
function headersBeside(event: OutboxEvent): Record<string, string> {
  const { free, traceparent } = splitHeaders(event)
  const headers: Record<string, string> = traceparent ? { ...free, traceparent } : { ...free }
  for (const name of Object.keys(headers)) if (NOT_FREE.test(name)) delete headers[name]
  return headers
}
