// An event as a broker gets it, whichever broker and whichever envelope that is.
import type { OutboxEvent } from '../events.ts'
import type { PublishFailure } from '../publishers/publisher.ts'

export interface WireMessage {
  readonly value: string | Buffer
  readonly headers: Record<string, string>
  readonly contentType: string | undefined
}

/** Where the brokers differ. */
export interface WireRules {
  readonly attributePrefix: 'ce_' | 'cloudEvents:'
  /** What a message of `'headers'` and `'json'` says that it is. */
  readonly jsonType: 'application/json' | undefined
}

/** Never throws or rejects. */
export type Writer = (
  event: OutboxEvent,
) => WireMessage | PublishFailure | Promise<WireMessage | PublishFailure>

/** Metadata as message headers: the same on every broker, and the same from both paths. */
export function messageHeaders(event: OutboxEvent): Record<string, string> {
  return {
    ...event.headers,
    'event-id': event.id,
    'event-type': event.type,
    'event-seq': String(event.seq),
    'aggregate-type': event.aggregateType,
    'aggregate-id': event.aggregateId,
    'occurred-at': event.occurredAt.toISOString(),
  }
}

/** What the headers of an event say: fields that have a header of their own, and what the user added. */
export function splitHeaders({ headers }: OutboxEvent) {
  const {
    'event-version': version,
    'correlation-id': correlationId,
    traceparent,
    ...free
  } = headers
  return { version, correlationId, traceparent, free }
}

/** The payload's text goes in as it is: parsing it would change numbers that JavaScript cannot hold. */
export function withMember(about: object, name: string, json: string): string {
  return `${JSON.stringify(about).slice(0, -1)},"${name}":${json}}`
}
