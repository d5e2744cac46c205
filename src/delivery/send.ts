// The one place that sends a batch and determines the outcome of each event. Both paths meet here.
// A crash during a send leaves the rows leased; the fallback sends them again once the lease ends.
import { performance } from 'node:perf_hooks'
import { formatDuration, show } from '../checks/duration.ts'
import { PublishError, toError } from '../errors.ts'
import type { OutboxEvent } from '../event/event.ts'
import type { PublishFailure, PublishResult } from '../event/publish-result.ts'
import type { Lifecycle } from '../lifecycle.ts'
import type { ResolvedOptions } from '../options/options.ts'
import type { Publisher } from '../publishers/publisher.ts'
import { backoffMs, type BackoffOptions } from '../runtime/backoff.ts'
import { raceTimeout } from '../runtime/race-timeout.ts'
import type { Circuits } from './circuits.ts'
import type { Gate } from './gate.ts'
import type { LeasedEvent, Outcome } from './leased-event.ts'
import { splitInOrder } from './order.ts'
import { publishRead, readPatienceMs } from './read-payloads.ts'
import type { Recorder } from './record.ts'

/** What send() returns once each event of the batch has an outcome. The record of the outcomes is under way. */
export interface Sent {
  /** Resolves when every known outcome is in the database, or given up after stop(). */
  readonly recorded: Promise<void>
  /** Resolves when no event of the batch needs its lease any more: later than `recorded` if outcomes are unknown. */
  readonly over: Promise<void>
}

const NOTHING = Promise.resolve()

export interface SenderParts {
  /** The publisher's name in logs and lifecycle events. */
  readonly name: string
  readonly publisher: Publisher
  readonly lifecycle: Lifecycle
  readonly options: ResolvedOptions
  readonly gate: Gate
  readonly circuits: Circuits
  readonly recorder: Recorder
}

export class Sender {
  readonly #parts: SenderParts
  readonly #timeoutMs: number
  /** 0: the table holds what is sent. */
  readonly #readPatienceMs: number
  readonly #lateAnswers = new Set<Promise<void>>()
  #closings = 0

  constructor(parts: SenderParts) {
    this.#parts = parts
    this.#timeoutMs = parts.publisher.timeoutMs ?? parts.options.publishTimeoutMs
    this.#readPatienceMs = parts.options.payloads?.read ? readPatienceMs(this.#timeoutMs) : 0
  }

  /** Sends what may be sent and gives the rest back. Never rejects. */
  async send(batch: readonly LeasedEvent[]): Promise<Sent> {
    const { gate, recorder } = this.#parts
    const { taken, left } = splitInOrder(
      batch,
      ({ event }) => event.lane,
      (leased) => gate.admit(leased),
    )
    const givenBack = left.length > 0 ? recorder.giveBack(left) : NOTHING
    if (taken.length === 0) return { recorded: givenBack, over: givenBack }
    const begunAt = performance.now()
    const publishing = this.#watchedPublish(taken)
    const results = await raceTimeout(publishing, this.#timeoutMs)
    if (results === 'late') {
      this.#giveUpWaiting(taken, begunAt)
      const answered = this.#awaitLateAnswer(publishing, taken, begunAt)
      this.#lateAnswers.add(answered)
      void answered.then(() => this.#lateAnswers.delete(answered))
      return { recorded: givenBack, over: both(answered, givenBack) }
    }
    this.#conclude(taken, results, begunAt)
    const recording = recorder.record(taken)
    const recorded = left.length > 0 ? both(recording, givenBack) : recording
    return { recorded, over: recorded }
  }

  /** Resolves when no send with an unknown outcome is left. */
  async idle(): Promise<void> {
    await Promise.all(this.#lateAnswers)
  }

  /** The publisher is about to be closed. What is still being read is given back: its send would open what is never closed. */
  close(): void {
    this.#closings += 1
  }

  /** #publish(), as the telemetry and the lifecycle events see it. */
  #watchedPublish(batch: readonly LeasedEvent[]): Promise<readonly PublishResult[]> {
    const { name, publisher, options, lifecycle } = this.#parts
    const { telemetry } = options
    const publish = () => {
      return lifecycle.timed({ step: 'send', publisher: name }, () => this.#publish(batch))
    }
    if (!telemetry) return publish()
    // Without payloads, which a telemetry might write somewhere.
    const events = batch.map(({ event }) => {
      const { payload: _, ...rest } = event
      return rest
    })
    const { system = null } = publisher
    return telemetry.send({ publisher: name, system, path: batch[0]!.path, events }, publish)
  }

  #publish(batch: readonly LeasedEvent[]): Promise<readonly PublishResult[]> {
    const { options, gate } = this.#parts
    const events = batch.map(({ event }) => event)
    const read = options.payloads?.read
    if (!read) return this.#publishEvents(events)
    const publish = (readable: readonly OutboxEvent[]) => this.#publishEvents(readable)
    const closings = this.#closings
    const mayBegin = (n: number) => closings === this.#closings && gate.isFresh(batch[n]!)
    const reading = { read, patienceMs: this.#readPatienceMs, mayBegin }
    return publishRead(events, reading, options, publish)
  }

  async #publishEvents(events: readonly OutboxEvent[]): Promise<readonly PublishResult[]> {
    const { publisher, options } = this.#parts
    try {
      const results = await publisher.publish(events, { deadLettersHold: options.deadLettersHold })
      if (!Array.isArray(results)) throw this.#breach(`${show(results)} instead of an array`)
      if (results.length !== events.length) {
        throw this.#breach(`${results.length} results for ${events.length} events`)
      }
      // An ack is a fact, whatever is wrong with the other results.
      return results.map((result) => {
        const breach = breachOf(result)
        return breach === null ? result : toTransient(this.#breach(breach), 'topic')
      })
    } catch (thrown) {
      return events.map(() => toTransient(toError(thrown)))
    }
  }

  #breach(what: string): PublishError {
    const { name } = this.#parts.publisher
    const message = `the publisher ${name} returned ${what}; correct its publish()`
    return new PublishError('PUBLISH_FAILED', message)
  }

  /** Notes each event's outcome on it. */
  #conclude(
    batch: readonly LeasedEvent[],
    results: readonly PublishResult[],
    begunAt: number,
  ): void {
    const now = performance.now()
    this.#parts.circuits.learn(batch, results, begunAt)
    for (const [n, leased] of batch.entries()) {
      const result = results[n]!
      const { event, committedAt } = leased
      leased.outcome = result.ok
        ? {
            kind: 'published',
            success: result,
            latencyMs: committedAt === null ? null : now - committedAt,
          }
        : classifyFailure(event, result, this.#parts.options)
    }
  }

  // A send cannot be cancelled. Its rows stay leased until the client gives up and the outcome is recorded, or until
  // the client should have given up; then they are given back. A response after that still counts if it is an ack, and is
  // fenced if it is not.
  async #awaitLateAnswer(
    publishing: Promise<readonly PublishResult[]>,
    batch: readonly LeasedEvent[],
    begunAt: number,
  ): Promise<void> {
    const { publisher, recorder } = this.#parts
    // The publisher begins when the payloads have been read.
    const settlesMs = (publisher.settlesWithinMs ?? this.#timeoutMs) + this.#readPatienceMs
    const patienceMs = Math.max(0, settlesMs - this.#timeoutMs)
    const recorded = publishing.then((results) => {
      this.#conclude(batch, results, begunAt)
      return { record: recorder.record(batch) }
    })
    const answered = await raceTimeout(recorded, patienceMs)
    if (answered !== 'late') await answered.record
  }

  #giveUpWaiting(batch: readonly LeasedEvent[], begunAt: number): void {
    const { circuits } = this.#parts
    for (const leased of batch) leased.outcome = { kind: 'unknown' }
    const waited = formatDuration(this.#timeoutMs)
    const error = new PublishError('PUBLISH_TIMEOUT', `the send did not settle within ${waited}`)
    circuits.noAnswer(batch, error, begunAt)
  }
}

/** What a failure means for its event. Only a failure that is the event's own fault counts as an attempt. */
export function classifyFailure(
  { attempts, maxAttempts }: Pick<OutboxEvent, 'attempts' | 'maxAttempts'>,
  { kind, error }: PublishFailure,
  backoff: BackoffOptions,
): Extract<Outcome, { kind: 'failed' | 'dead' | 'untried' }> {
  switch (kind) {
    case 'transient':
      return { kind: 'failed', error, counts: false, retryInMs: 0 }
    case 'permanent':
      return { kind: 'dead', error }
    case 'rejected': {
      const attempt = attempts + 1
      if (attempt >= maxAttempts) return { kind: 'dead', error }
      return { kind: 'failed', error, counts: true, retryInMs: backoffMs(attempt, backoff) }
    }
    case 'held':
      return { kind: 'untried' }
  }
}

const KINDS = ['transient', 'permanent', 'rejected', 'held']

/** What is wrong with a result, because publishers may be written in JavaScript; null if nothing is. */
function breachOf(result: PublishResult | null | undefined): string | null {
  if (result?.ok === true) return null
  if (result?.ok !== false) return "a result whose 'ok' is neither true nor false"
  const { kind, error, blames = 'broker' } = result
  if (!KINDS.includes(kind)) {
    return `a failure whose 'kind' is ${show(kind)} instead of one of ${KINDS.join(', ')}`
  }
  if (typeof error !== 'object' || error === null)
    return `a failure whose 'error' is ${show(error)}`
  if ('scope' in result) return "a failure with 'scope', which is now called 'blames'"
  if (blames === 'broker' || blames === 'topic') return null
  return `a failure whose 'blames' is ${show(blames)} instead of 'broker' or 'topic'`
}

function toTransient(error: Error, blames: 'broker' | 'topic' = 'broker'): PublishFailure {
  return { ok: false, kind: 'transient', error, blames }
}

async function both(one: Promise<void>, other: Promise<void>): Promise<void> {
  await one
  await other
}
