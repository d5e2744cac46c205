// The interface that hides the broker. A publisher sends a batch and says, for each event, what
// became of it; it neither retries for long nor knows of leases, attempts or the database.
import { PublishError } from '../errors.ts'
import type { OutboxEvent } from '../events.ts'

export interface Publisher {
  /** Shown in logs: `kafka`, `handlers`. */
  readonly name: string
  /** When a send counts as unknown and its destination as out of reach. @default `publishTimeout` */
  readonly timeoutMs?: number
  /**
   * The longest a publish() may take to settle, whatever the broker does. The rows of a batch stay
   * leased that long, so that nobody sends them while the client may still be retrying.
   * @default the timeout
   */
  readonly settlesWithinMs?: number
  /**
   * Whether each aggregate goes in a batch of its own, for publishers whose sends take very different
   * times: a slow one then holds up nobody, and each outcome is recorded as it comes. @default false
   */
  readonly perAggregate?: boolean
  /**
   * How many events one claim of the fallback should take, unless the option `batchSize` says it: more for one
   * that sends many in about the time of a few. No limit: the immediate path hands over up to 500. @default 250
   */
  readonly batchSize?: number
  /** Called by start() to warm up. A failure is not fatal: publish() has to connect by itself. */
  connect?(): Promise<void>
  /**
   * Sends the events. Events of one aggregate leave in the order given; when one of them fails, those
   * after it are not sent (`held`). A `permanent` failure is no reason to hold the rest, unless the rules
   * say so. Answers one result per event, in the order given. A rejection counts as `transient` for the
   * whole batch.
   */
  publish(events: readonly OutboxEvent[], rules?: PublishRules): Promise<readonly PublishResult[]>
  /** Called by stop(). Closes only what this publisher opened. */
  disconnect?(): Promise<void>
}

export interface PublishRules {
  /** Whether an event that failed for good keeps the later events of its aggregate back. @default false */
  readonly deadLettersHold?: boolean
}

export type PublishResult = PublishSuccess | PublishFailure

export interface PublishSuccess {
  readonly ok: true
  readonly topic: string
  readonly key: string
  readonly partition: number | null
  readonly offset: string | null
}

export interface PublishFailure {
  readonly ok: false
  readonly kind: FailureKind
  readonly error: Error
  /** For `transient`: whether the event's topic alone is in trouble. @default 'broker' */
  readonly scope?: 'broker' | 'topic'
}

/**
 * - `transient`: the destination's fault (unreachable, timeout, no leader). Costs no attempt; the
 *   circuit of the destination opens.
 * - `permanent`: the message's fault (too large, not authorised). Dead letter at once.
 * - `rejected`: somebody looked at it and said no (a handler threw). Costs an attempt, then backoff.
 * - `held`: not tried, because an earlier event of its aggregate failed in the same batch.
 */
export type FailureKind = 'transient' | 'permanent' | 'rejected' | 'held'

/** For what a batch did not get to before it had to report. */
export const TOOK_TOO_LONG: PublishFailure = {
  ok: false,
  kind: 'held',
  error: new PublishError('PUBLISH_FAILED', 'the batch took too long to get to this event'),
}
