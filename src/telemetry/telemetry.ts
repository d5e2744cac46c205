// Where a telemetry may look. The path calls these methods, in this order, if the option `telemetry` is set; everything
// that lifecycle events report already is taken from there. A telemetry sees no payloads, and a crash here costs nothing:
// what it knows is lost with the process.
import type { EventRef, OutboxEvent } from '../event/event.ts'
import type { PublishResult } from '../event/publish-result.ts'
import type { OutboxEvents, Path } from '../lifecycle.ts'

export type TextHeaders = Readonly<Record<string, string>>

export interface Telemetry {
  /** Called once, by createOutbox(). The only call that may throw: OutboxOptionsError, if it cannot watch this outbox. */
  watch?(outbox: WatchedOutbox): void
  /**
   * Called inside emit(), in the context of the request. Returns headers to save with the event, such as its trace
   * context. Headers that the event already has are never replaced.
   */
  create?(event: CreatedEvent): TextHeaders | null
  /**
   * Called before each send, on both paths. Must call publish() at once, in the context that the send should have. The
   * function that it returns gets the results, one per event, when the client has settled.
   */
  send?(batch: SentBatch, publish: () => void): End<readonly PublishResult[]>
  /**
   * Called by the inbox for each message. Must call handle() at once, in the context that the work should have. The
   * function that it returns is called when the transaction has ended.
   */
  process?(delivered: DeliveredEvent, handle: () => void): End<Processed>
}

export type End<T> = ((outcome: T) => void) | undefined

export interface CreatedEvent extends EventRef {
  /** The messaging system of its publisher, such as `kafka`, or else the publisher's name. */
  readonly system: string
  /** Those that the application gave. */
  readonly headers: TextHeaders
}

export interface SentBatch {
  /** The publisher's name in the router, or else its own name. */
  readonly publisher: string
  /** `system` of the publisher. null: not a messaging system, or an unknown one. */
  readonly system: string | null
  readonly path: Path
  /** At least one. */
  readonly events: readonly Omit<OutboxEvent, 'payload'>[]
}

export interface DeliveredEvent {
  readonly id: string
  readonly type: string | null
  readonly traceparent: string | null
  readonly headers: TextHeaders
  /** The consumer's name in the inbox. */
  readonly consumer: string
  /** `kafka`, `rabbitmq`, or null if the message does not show it. */
  readonly system: string | null
  /** The topic or the routing key, if the message has it. */
  readonly destination: string | null
}

export type Processed =
  | { readonly outcome: 'handled' | 'duplicate' | 'late' }
  | { readonly outcome: 'failed'; readonly error: unknown }

/** The part of an outbox that metrics are made of. */
export interface WatchedOutbox {
  readonly events: OutboxEvents
  /** Asks the database. */
  stats(): Promise<WatchedStats>
  /** Asks nothing. */
  activity(): readonly PublisherActivity[]
}

export interface WatchedStats {
  readonly pending: { readonly count: number }
  readonly scheduled: { readonly count: number }
  readonly dead: { readonly count: number }
  readonly due: number
  readonly held: number
  readonly lagMs: number | null
  readonly paused: readonly unknown[]
}

/** What a publisher of this process is doing now. */
export interface PublisherActivity {
  /** Its name in the router, or else its own name. */
  readonly publisher: string
  /** Events that this process holds: queued, under way, or not recorded yet. */
  readonly inFlight: number
  /** Destinations whose circuit is open: topics, and null for the whole broker. */
  readonly unreachable: readonly (string | null)[]
}
