// The one place that records outcomes, batched across sends: a statement for acks and one for failures, each in a fresh
// transaction.
// After a crash before the record, the event is sent again, so consumers must dedupe on the event id.
// While the database is unreachable, outcomes wait here. Their number is bounded, because a row counts as in flight
// until its outcome is recorded.
import { setTimeout as delay } from 'node:timers/promises'
import { describeError, toError } from '../errors.ts'
import { refOf } from '../event/event.ts'
import { laneByEvent } from '../event/lane.ts'
import type { Lifecycle } from '../lifecycle.ts'
import type { ResolvedOptions } from '../options/options.ts'
import { restMs } from '../runtime/backoff.ts'
import type { Bell } from '../runtime/bell.ts'
import { Trouble } from '../runtime/trouble.ts'
import type { FailureRecord, Store } from '../store/outbox/outbox-store.ts'
import { toFailureRecord } from './failure-record.ts'
import type { LeasedEvent } from './leased-event.ts'
import type { OwnEvents } from './own-events.ts'

const TEXTS = {
  level: 'error',
  begins: 'could not record outcomes; the outbox keeps them and will try again',
  goesOn: 'still cannot record outcomes',
  over: 'outcomes can be recorded again',
} as const

/** Logged after stop(), when the application may already have closed its database. */
const GIVEN_UP =
  'outcomes came too late to be recorded; the next process that runs takes over those events'

const FAILED = 'event failed, will retry'
const FAILED_IN_ORDER = `${FAILED}; later events of its aggregate wait until then`

const STEP = { step: 'record', publisher: null } as const
const NONE: ReadonlyMap<string, string> = new Map()
const NOTHING = Promise.resolve()

/** The outcomes of one send. */
interface Entry {
  readonly events: readonly LeasedEvent[]
  readonly recorded: () => void
  /** Whether an earlier statement may have recorded it, and then failed or timed out. */
  repeated: boolean
}

export interface RecorderParts {
  readonly store: Pick<Store<never>, 'recordPublished' | 'recordFailed'>
  readonly options: ResolvedOptions
  readonly lifecycle: Lifecycle
  /** Learns the outcomes of the events that this process committed. */
  readonly own: OwnEvents
  /** Rung when the database takes records again, and for the copy of a dead letter. */
  readonly bell: Bell
}

export class Recorder {
  readonly #parts: RecorderParts
  readonly #trouble: Trouble
  #waiting: Entry[] = []
  #flushing: Promise<void> | null = null
  #patient = true
  #behind = false
  #endedCount = 0

  constructor(parts: RecorderParts) {
    this.#parts = parts
    this.#trouble = new Trouble(parts.options.logger, TEXTS)
  }

  /** Records the outcome of each event. Resolves when all are recorded, or given up after stop(). Never rejects. */
  record(events: readonly LeasedEvent[]): Promise<void> {
    if (events.length === 0) return NOTHING
    return new Promise((recorded) => {
      this.#waiting.push({ events, recorded, repeated: false })
      this.#flushing ??= this.#flush()
    })
  }

  /** Frees rows that this process will not send, without waiting for their leases to end. */
  async giveBack(events: readonly LeasedEvent[]): Promise<void> {
    for (const leased of events) leased.outcome = { kind: 'untried' }
    await this.record(events)
  }

  /** Whether outcomes wait because the database fails. */
  get isBehind(): boolean {
    return this.#behind
  }

  /** How many events were recorded as published or dead since the process started. */
  get endedCount(): number {
    return this.#endedCount
  }

  /** Resolves when nothing waits to be recorded. */
  async idle(): Promise<void> {
    while (this.#flushing) await this.#flushing
  }

  /** While patient, the recorder retries a failing database. Otherwise a failure is final. */
  setPatience(patient: boolean): void {
    this.#patient = patient
  }

  // Outcomes that arrive while a batch is written go into the next batch, so batches grow with the load.
  async #flush(): Promise<void> {
    let failures = 0
    while (this.#waiting.length > 0) {
      const batch = this.#waiting
      this.#waiting = []
      try {
        await this.#write(batch)
        for (const { recorded } of batch) recorded()
        failures = 0
        this.#recover()
      } catch (thrown) {
        if (this.#keepOrGiveUp(batch, thrown)) continue
        failures += 1
        await delay(restMs(failures))
      }
    }
    // In the same turn as the check above, so that a later outcome starts a new flush.
    this.#flushing = null
  }

  #recover(): void {
    this.#trouble.end({})
    if (!this.#behind) return
    this.#behind = false
    this.#parts.bell.ring()
  }

  /** Keeps the batch for the next attempt. After stop() there is none: gives the batch up and returns true. */
  #keepOrGiveUp(batch: Entry[], thrown: unknown): boolean {
    const { lifecycle, options } = this.#parts
    const outcomes = batch.reduce((sum, { events }) => sum + events.length, 0)
    this.#behind = this.#patient
    lifecycle.tell('error', { step: 'record', error: toError(thrown) })
    if (!this.#patient) {
      options.logger.warn({ err: thrown, outcomes }, GIVEN_UP)
      for (const { recorded } of batch) recorded()
      return true
    }
    this.#trouble.happened({ err: thrown, outcomes })
    // Both statements may be repeated: published is idempotent, and a failure is fenced by its token.
    for (const entry of batch) entry.repeated = true
    this.#waiting.unshift(...batch)
    return false
  }

  async #write(batch: readonly Entry[]): Promise<void> {
    const { store, bell, lifecycle, options } = this.#parts
    const published: string[] = []
    const failed: FailureRecord[] = []
    for (const { events, repeated } of batch) {
      for (const leased of events) {
        if (leased.outcome?.kind === 'published') published.push(leased.event.id)
        else failed.push({ ...toFailureRecord(leased, options), isRepeated: repeated })
      }
    }
    const [newlyPublished, recorded] = await lifecycle.timed(STEP, async () => [
      published.length > 0 ? await store.recordPublished(published) : new Set<string>(),
      failed.length > 0 ? await store.recordFailed(failed) : NONE,
    ])
    if (failed.some(({ copyId }) => copyId !== null)) bell.ring()
    for (const { events, repeated } of batch) {
      for (const leased of events) this.#tell(leased, newlyPublished, recorded, repeated)
    }
  }

  #tell(
    { event, token, path, outcome }: LeasedEvent,
    newlyPublished: Set<string>,
    recorded: ReadonlyMap<string, string>,
    repeated: boolean,
  ): void {
    const { lifecycle, options, own } = this.#parts
    const isRecorded = recorded.get(event.id) === token
    switch (outcome!.kind) {
      case 'published': {
        const { success, latencyMs } = outcome!
        const { topic, key, partition, offset } = success
        const ref = refOf(event)
        own.delivered(event.id)
        lifecycle.tell('event:published', {
          event: ref,
          path,
          latencyMs,
          topic,
          key,
          partition,
          offset,
        })
        // After a repeated record, it is unknown whether the first attempt had already recorded the event. Of two acks
        // of a row in one batch, the second finds it deleted here.
        const isFirst = newlyPublished.delete(event.id) || repeated
        if (isFirst) this.#endedCount += 1
        else lifecycle.tell('event:duplicate', { event: ref, path })
        return
      }
      case 'failed': {
        if (!isRecorded) return
        const { error, retryInMs, counts } = outcome!
        const ref = refOf(event)
        const { lane } = event
        const attempts = event.attempts + Number(counts)
        // Not logged for an outage, which the circuit reports once instead of once per event.
        if (counts) {
          const fields = { event: ref, err: error, attempts, retryInMs }
          const isInOrder = options.orderScopes && lane !== laneByEvent(event)
          options.logger.warn(fields, isInOrder ? FAILED_IN_ORDER : FAILED)
          own.failed(event.id, { attempts, error: describeError(error), isDead: false })
        }
        lifecycle.tell('event:failed', { event: ref, lane, path, error, attempts, retryInMs })
        return
      }
      case 'dead': {
        if (!isRecorded) return
        const { error } = outcome!
        const ref = refOf(event)
        const attempts = event.attempts + 1
        this.#endedCount += 1
        own.failed(event.id, { attempts, error: describeError(error), isDead: true })
        options.logger.error(
          { event: ref, err: error, attempts },
          'event became a dead letter; fix the cause and retry the event, or discard it',
        )
        lifecycle.tell('event:dead', { event: ref, error, attempts })
      }
    }
  }
}
