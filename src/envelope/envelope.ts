// What an event looks like on the wire: what goes into the value, and what travels beside it. Consumers depend on this,
// so each format is fixed. 'headers' is the default.
import { show } from '../checks/duration.ts'
import { OutboxOptionsError } from '../errors.ts'
import type { OutboxEvent } from '../event/event.ts'
import { CloudEvents, cloudEvents, writeCloudEvent } from './cloud-events.ts'
import { type EventSerializer, writeWith } from './serializer.ts'
import {
  messageHeaders,
  splitHeaders,
  type WireMessage,
  type WireRules,
  withMember,
  type Writer,
} from './wire-message.ts'

/**
 * - `'headers'`: the payload is the value, and everything else is in headers.
 * - `'json'`: the same headers, and the value is one JSON object with everything in it.
 * - `cloudEvents({ source })`: as the CloudEvents binding of the broker defines it.
 * - a function: what it returns becomes the value.
 */
export type Envelope = 'headers' | 'json' | CloudEvents | EventSerializer

export function resolveEnvelope(envelope: Envelope, rules: WireRules): Writer {
  if (envelope === 'headers') return (event) => writePlain(event, event.payload, rules)
  if (envelope === 'json') return (event) => writePlain(event, jsonOf(event), rules)
  if (envelope instanceof CloudEvents) return (event) => writeCloudEvent(event, envelope, rules)
  // cloudEvents without the call is a function too. As a serializer, it would make every event a dead letter.
  const isUncalled = (envelope as unknown) === cloudEvents
  if (typeof envelope === 'function' && !isUncalled) return writeWith(envelope)
  throw new OutboxOptionsError(
    `envelope must be 'headers', 'json', cloudEvents({ source }) or a function that serializes an event, got ${show(envelope)}`,
  )
}

function writePlain(event: OutboxEvent, value: string, { jsonType }: WireRules): WireMessage {
  return { value, headers: messageHeaders(event), contentType: jsonType }
}

function jsonOf(event: OutboxEvent): string {
  const { version, correlationId, traceparent, free } = splitHeaders(event)
  const { id, type, seq, lane, aggregateType, aggregateId, occurredAt } = event
  const about = {
    id,
    type,
    seq,
    lane,
    aggregateType,
    aggregateId,
    occurredAt,
    version,
    correlationId,
    traceparent,
    headers: Object.keys(free).length > 0 ? free : undefined,
  }
  return withMember(about, 'payload', event.payload)
}
