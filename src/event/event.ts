// The shapes of an event, from what the application emits to what a publisher receives.
import type { Duration } from '../checks/duration.ts'

/** A number must be a whole number that JavaScript represents exactly. It is stored as text. */
export type AggregateId = string | number | bigint

export const EVENT_STATUSES = [
  'scheduled',
  'pending',
  'failed',
  'published',
  'dead_letter',
] as const

/**
 * `scheduled`: not due yet, and pending from then on. `failed`: refused at least once, and tried again when it has rested.
 */
export type EventStatus = (typeof EVENT_STATUSES)[number]

/** Optional details of an event. */
export interface EventDetails {
  /** The topic of the event. @default from its declaration or the option `topic`, else the aggregate type */
  topic?: string
  /** Ties the events of one request together. Sent as the header `correlation-id`. */
  correlationId?: string
  /** W3C trace context. Sent as the header `traceparent`. */
  traceparent?: string
  /** Further headers, text only. */
  headers?: Readonly<Record<string, string>>
  /** When it happened, if not now. @default the database's clock at the moment of saving */
  occurredAt?: Date
  /** How many times a failing event is tried. @default its declaration, `maxAttemptsByType`, `maxAttempts` */
  maxAttempts?: number
  /**
   * Schedules the event: it is delivered at this time by the database's clock, or at once if that has passed. At most ten
   * years ahead. A scheduled event takes no part in the order of its aggregate.
   */
  deliverAt?: Date
  /** Schedules the event: it is delivered this long after it was saved, such as `'15m'`. Instead of `deliverAt`. */
  deliverAfter?: Duration
}

/** A domain event as the application emits it, without a catalog. */
export interface NewEvent extends EventDetails {
  /** What happened, in the past tense: `OrderCompleted`. At most 255 bytes. */
  type: string
  /** The type of the aggregate that it happened to: `order`. At most 255 bytes. */
  aggregateType: string
  /** The aggregate id and message key, so that one aggregate stays in one partition, in order. At most 512 bytes. */
  aggregateId: AggregateId
  /** Anything that JSON represents exactly. docs/guides/payloads.md lists what is refused. */
  payload: unknown
}

/** Identifies an event in logs and lifecycle events. Never includes the payload. */
export interface EventRef {
  readonly id: string
  readonly type: string
  readonly aggregateType: string
  readonly aggregateId: string
  readonly topic: string
}

/** An event with its lane, and without its payload. */
export interface LaneRef extends EventRef {
  /** Events of one lane are sent in the order of `seq`. Events of different lanes have no order. */
  readonly lane: number
}

/** An event that passed all checks and waits for the end of its unit of work. */
export interface PreparedEvent extends LaneRef {
  /** JSON text, exactly as it is stored and sent. */
  readonly payload: string
  readonly headers: Readonly<Record<string, string>>
  readonly occurredAt: Date | null
  readonly maxAttempts: number
  /** When to deliver it, by the database's clock. Without it: now. */
  readonly schedule?: EventSchedule
}

/** A time, or a time span that counts from the save. */
export type EventSchedule = { readonly at: Date } | { readonly afterMs: number }

/** A saved event as a publisher receives it, from either path. */
export interface OutboxEvent extends Omit<PreparedEvent, 'schedule'> {
  /** Its place in the order of saving. */
  readonly seq: number
  readonly occurredAt: Date
  /** When this process leased it, by the database's clock: a lease ago at most. For the timestamps of brokers. */
  readonly leasedAt: Date
  /** Failed attempts so far. */
  readonly attempts: number
}

export function laneRefOf(event: LaneRef): LaneRef {
  return { ...refOf(event), lane: event.lane }
}

export function refOf({ id, type, aggregateType, aggregateId, topic }: EventRef): EventRef {
  return { id, type, aggregateType, aggregateId, topic }
}
