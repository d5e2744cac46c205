// The interface that hides the broker. A publisher sends a batch and reports the outcome of each event. It does not
// retry for long, and it knows nothing of leases, attempts or the database.
import { PublishError } from '../errors.ts'
import type { OutboxEvent } from '../event/event.ts'
import type { PublishFailure, PublishResult } from '../event/publish-result.ts'

export interface Publisher {
  /** The name in logs: `kafka`, `handlers`. */
  readonly name: string
  /**
   * The messaging system, as OpenTelemetry names it: `kafka`, `rabbitmq`. If set, a telemetry traces the sends itself and
   * suppresses the instrumentation of the client. @default none: spans of other libraries are recorded inside the send
   */
  readonly system?: string
  /** When a send counts as unknown and its destination as out of reach. @default `publishTimeout` */
  readonly timeoutMs?: number
  /**
   * The longest time that publish() may take to settle, whatever the broker does. The rows of a batch stay leased that
   * long, so that no other instance sends them while the client may still retry.
   * @default the timeout
   */
  readonly settlesWithinMs?: number
  /**
   * The scope in which a consumer can observe order: one topic, or everything that goes through this publisher. Events
   * of one aggregate are sent in the order in which they were saved within one scope, and in parallel across scopes. With
   * 'topic', batches are made topic by topic.
   * @default 'publisher'
   */
  readonly orderScope?: OrderScope
  /**
   * Whether each lane (an aggregate within its order scope) goes in a separate batch, for publishers whose sends take
   * very different times. A slow lane then delays no other, and each outcome is recorded as soon as it is known.
   * @default false
   */
  readonly perLane?: boolean
  /**
   * How many events one claim of the fallback should take, unless the option `batchSize` is set. Set a higher number if
   * sending many takes about as long as a few. Not a limit: the immediate path sends up to 500 at once. @default 250
   */
  readonly batchSize?: number
  /**
   * Called by start() to warm up, of the first outbox if several share the publisher. A failure is not fatal, because
   * publish() has to connect by itself.
   */
  connect?(): Promise<void>
  /**
   * Sends the events. Events of one lane (`event.lane`) go out in the given order. When one of them fails, the later ones
   * are not sent (`held`), and neither are those that the publisher cannot begin in time. After a `permanent` failure they
   * are sent all the same, unless the rules say otherwise. Returns one result per event, in the given order. A rejected
   * promise counts as `transient` for the whole batch.
   */
  publish(events: readonly OutboxEvent[], rules?: PublishRules): Promise<readonly PublishResult[]>
  /** Called by stop(), of the last outbox that uses the publisher. Closes only what this publisher opened. */
  disconnect?(): Promise<void>
}

export type OrderScope = 'topic' | 'publisher'

export interface PublishRules {
  /** Whether a permanently failed event holds back the later events of its lane. @default false */
  readonly deadLettersHold?: boolean
}

/** The result of an event that a batch did not reach in time. */
export const TOOK_TOO_LONG: PublishFailure = {
  ok: false,
  kind: 'held',
  error: new PublishError('PUBLISH_FAILED', 'the batch took too long to get to this event'),
}
