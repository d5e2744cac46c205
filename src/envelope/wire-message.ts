// An event as a broker receives it, for any broker and any envelope.
import type { OutboxEvent } from '../event/event.ts'
import type { PublishFailure } from '../event/publish-result.ts'

export interface WireMessage {
  readonly value: string | Buffer
  readonly headers: Record<string, string>
  readonly contentType: string | undefined
}

/** What differs between brokers. */
export interface WireRules {
  readonly attributePrefix: 'ce_' | 'cloudEvents:'
  /** The content type of messages in the formats `'headers'` and `'json'`. */
  readonly jsonType: 'application/json' | undefined
}

/** Never throws or rejects. */
export type Writer = (
  event: OutboxEvent,
) => WireMessage | PublishFailure | Promise<WireMessage | PublishFailure>

/**
 * Metadata as message headers: the same on every broker and on both paths. The application's own headers come last and
 * one by one: spread in front of ours, they gave each event an object of another shape, which took ten times as long.
 */
export function messageHeaders(event: OutboxEvent): Record<string, string> {
  const headers: Record<string, string> = {
    'event-id': event.id,
    'event-type': event.type,
    'event-seq': String(event.seq),
    'event-lane': String(event.lane),
    'aggregate-type': event.aggregateType,
    'aggregate-id': event.aggregateId,
    'occurred-at': event.occurredAt.toISOString(),
  }
  for (const name of Object.keys(event.headers)) headers[name] ??= event.headers[name]!
  return headers
}

/**
 * A connector that reads the table (relay: 'cdc') cannot make a header of each of the application's own. They arrive as JSON in
 * this one. The inbox reads it.
 */
export const FREE_HEADERS = 'event-headers'

/** Splits the headers of an event: those that carry a field of the event, and those that the application added. */
export function splitHeaders({ headers }: OutboxEvent) {
  const {
    'event-version': version,
    'correlation-id': correlationId,
    traceparent,
    ...free
  } = headers
  return { version, correlationId, traceparent, free }
}

/** Inserts JSON text unchanged, because parsing it would change numbers that JavaScript cannot represent exactly. */
export function withMember(about: object, name: string, json: string): string {
  return `${JSON.stringify(about).slice(0, -1)},"${name}":${json}}`
}
