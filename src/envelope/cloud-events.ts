// CloudEvents 1.0, by its bindings for Kafka and AMQP. The aggregate id is the subject and the partition key. Fields
// that CloudEvents does not define are extension attributes, whose names consist of lower-case letters and digits.
import { show } from '../checks/duration.ts'
import { OutboxOptionsError } from '../errors.ts'
import type { OutboxEvent } from '../event/event.ts'
import type { PublishFailure } from '../event/publish-result.ts'
import { rejectUnknown, requireOneOf } from '../checks/checks.ts'
import { unwritable } from './serializer.ts'
import { splitHeaders, type WireMessage, type WireRules, withMember } from './wire-message.ts'

export interface CloudEventsOptions {
  /** The origin of the events: a URI reference, such as `/shop/orders` or `https://shop.example/orders`. */
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

/** Sends events as CloudEvents. For the option `envelope` of a publisher. */
export function cloudEvents(options: CloudEventsOptions): CloudEvents {
  rejectUnknown('cloudEvents()', options, ['source', 'mode'])
  const { source, mode = 'binary' } = options
  if (typeof source !== 'string' || source === '' || !URI_REFERENCE.test(source)) {
    throw new OutboxOptionsError(
      `cloudEvents() needs source, a URI reference that identifies the origin of the events, such as '/shop/orders', got ${show(source)}`,
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
      `'${event.type}' cannot be a CloudEvent: its ${broken} contains a control character or a noncharacter, which CloudEvents forbids; emit the event without it, or use another envelope`,
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

/** What an attribute may contain. emit() has already refused lone surrogates. */
const ALLOWED = /^[^\p{Cc}\p{Noncharacter_Code_Point}]*$/u

/** As many digits as the largest bigint has. CloudEvents requires sequences to sort as text. */
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
    lane: String(event.lane),
    // CloudEvents does not allow an empty attribute.
    ...(correlationId && { correlationid: correlationId }),
    ...(traceparent && { traceparent }),
    ...(version && { dataversion: version }),
  }
}

/**
 * Headers that are left out: the one that distinguishes the modes, and names that look like attributes. Otherwise an
 * application that copies the headers of a received CloudEvent to its own events would give them all the same id.
 */
const NOT_FREE = /^(?:content-type$|ce_|cloudEvents[:_])/i

/** The application's own headers, and the trace context under the name that tracing tools look for. */
function headersBeside(event: OutboxEvent): Record<string, string> {
  const { free, traceparent } = splitHeaders(event)
  const headers: Record<string, string> = traceparent ? { ...free, traceparent } : { ...free }
  for (const name of Object.keys(headers)) if (NOT_FREE.test(name)) delete headers[name]
  return headers
}
