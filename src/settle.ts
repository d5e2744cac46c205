// The one place that records outcomes: batched across sends, each batch in a fresh transaction.
// A crash before a record is written sends the event again, so consumers dedupe on the event id.
// While the database is away outcomes wait here; they are bounded because a row counts as in flight
// until its outcome is recorded.
import { setTimeout as delay } from 'node:timers/promises'
import { restMs } from './backoff.ts'
import { describeError, toError } from './errors.ts'
import { newEventId } from './event-id.ts'
import { refOf } from './events.ts'
import type { LeasedEvent } from './leases.ts'
import type { Lifecycle, Path } from './lifecycle.ts'
import type { ResolvedOptions } from './options.ts'
import type { PublishSuccess } from './publishers/publisher.ts'
import type { FailureRecord, Store } from './store/store.ts'
import { Trouble } from './trouble.ts'

/** What became of one event, as delivery classified it. */
export type Outcome = { readonly leased: LeasedEvent; readonly path: Path } & (
  | {
      readonly kind: 'published'
      readonly success: PublishSuccess
      readonly latencyMs: number | null
    }
  | {
      readonly kind: 'failed'
      readonly error: Error
      /** Whether this failure counts as an attempt. */
      readonly counts: boolean
      readonly retryInMs: number
    }
  /** Its last attempt is counted too. */
  | { readonly kind: 'dead'; readonly error: Error }
  /** Claimed but not tried: given back as it was. */
  | { readonly kind: 'untried' }
)

const TEXTS = {
  level: 'error',
  begins: 'could not record outcomes; they are kept and recorded later',
  goesOn: 'still cannot record outcomes',
  over: 'outcomes are recorded again',
} as const

/** After stop(), when the application may have closed its database already. */
const GIVEN_UP = 'outcomes came too late to be recorded; whoever runs next takes those events'

const NONE: ReadonlyMap<string, string> = new Map()

/** What one send came to. */
interface Entry {
  readonly outcomes: readonly Outcome[]
  readonly recorded: () => void
  /** Whether it may have been recorded before, by a statement that failed or was not answered. */
  repeated: boolean
}

export class Settler {
  readonly #store: Pick<Store<never>, 'settlePublished' | 'settleFailed'>
  readonly #leases: { drop(leased: readonly LeasedEvent[]): void }
  readonly #lifecycle: Lifecycle
  readonly #options: ResolvedOptions
  readonly #wakePoller: () => void
  readonly #trouble: Trouble
  #waiting: Entry[] = []
  #flushing: Promise<void> | null = null
  #patient = true
  #behind = false

  constructor(
    store: Pick<Store<never>, 'settlePublished' | 'settleFailed'>,
    leases: { drop(leased: readonly LeasedEvent[]): void },
    lifecycle: Lifecycle,
    options: ResolvedOptions,
    wakePoller: () => void,
  ) {
    this.#store = store
    this.#leases = leases
    this.#lifecycle = lifecycle
    this.#options = options
    this.#wakePoller = wakePoller
    this.#trouble = new Trouble(options.logger, TEXTS)
  }

  /** Resolves when all are recorded; never rejects. */
  async record(outcomes: readonly Outcome[]): Promise<void> {
    // A flush of nothing would end before anybody could know that it had begun.
    if (outcomes.length === 0) return
    await new Promise<void>((recorded) => {
      this.#waiting.push({ outcomes, recorded, repeated: false })
      this.#flushing ??= this.#flush()
    })
  }

  /** Whether outcomes are waiting for a database that fails. */
  get isBehind(): boolean {
    return this.#behind
  }

  /** Resolves when nothing waits to be recorded. */
  async idle(): Promise<void> {
    while (this.#flushing) await this.#flushing
  }

  /** While patient, a failing database is tried again and again; else its failure is final. */
  setPatience(patient: boolean): void {
    this.#patient = patient
  }

  // What arrives while one batch is being written goes with the next: the busier, the larger.
  async #flush(): Promise<void> {
    let failures = 0
    while (this.#waiting.length > 0) {
      const batch = this.#waiting
      this.#waiting = []
      try {
        await this.#write(batch)
        for (const { recorded } of batch) recorded()
        failures = 0
        this.#trouble.isOver({})
        if (this.#behind) {
          this.#behind = false
          this.#wakePoller()
        }
      } catch (thrown) {
        this.#behind = this.#patient
        this.#lifecycle.tell('error', { step: 'settle', error: toError(thrown) })
        if (!this.#patient) {
          const given = batch.flatMap(({ outcomes }) => outcomes)
          this.#options.logger.warn({ err: thrown, outcomes: given.length }, GIVEN_UP)
          this.#leases.drop(given.map(({ leased }) => leased))
          for (const { recorded } of batch) recorded()
          continue
        }
        const waiting = batch.reduce((sum, { outcomes }) => sum + outcomes.length, 0)
        this.#trouble.happened({ err: thrown, outcomes: waiting })
        // Both statements may be repeated: published is idempotent, a failure is fenced by its token.
        for (const entry of batch) entry.repeated = true
        this.#waiting.unshift(...batch)
        failures += 1
        await delay(restMs(failures))
      }
    }
    // In the same turn as the look above: an outcome that comes later finds nobody flushing.
    this.#flushing = null
  }

  async #write(batch: readonly Entry[]): Promise<void> {
    const outcomes = batch.flatMap((entry) => entry.outcomes)
    const published = outcomes.filter((outcome) => outcome.kind === 'published')
    const failed = outcomes.filter((outcome) => outcome.kind !== 'published')
    const ids = published.map(({ leased }) => leased.event.id)
    const news = ids.length > 0 ? await this.#store.settlePublished(ids) : new Set<string>()
    const records = failed.map((outcome) => toRecord(outcome, this.#options.deadLetterTopic))
    const current = failed.length > 0 ? await this.#store.settleFailed(records) : NONE
    this.#leases.drop(outcomes.map(({ leased }) => leased))
    if (records.some(({ copyId }) => copyId !== null)) this.#wakePoller()
    for (const { outcomes: recorded, repeated } of batch) {
      for (const outcome of recorded) {
        const { event, token } = outcome.leased
        if (outcome.kind === 'published') {
          this.#tell(outcome)
          // Of a record that was repeated nobody knows whether the first try was what made it old.
          const isNews = news.delete(event.id) || repeated
          if (!isNews) {
            this.#lifecycle.tell('event:duplicate', { event: refOf(event), path: outcome.path })
          }
        } else if (current.get(event.id) === token) this.#tell(outcome)
      }
    }
  }

  #tell(outcome: Outcome): void {
    const { event } = outcome.leased
    const ref = refOf(event)
    const { path } = outcome
    if (outcome.kind === 'published') {
      const { topic, key, partition, offset } = outcome.success
      const { latencyMs } = outcome
      this.#lifecycle.tell('event:published', {
        event: ref,
        path,
        latencyMs,
        topic,
        key,
        partition,
        offset,
      })
    } else if (outcome.kind === 'failed') {
      const { error, retryInMs } = outcome
      const attempts = event.attempts + Number(outcome.counts)
      // Not for an outage, which the circuit reports once instead of once per event.
      if (outcome.counts) {
        this.#options.logger.warn(
          { event: ref, err: error, attempts, retryInMs },
          'event failed, will retry',
        )
      }
      this.#lifecycle.tell('event:failed', { event: ref, path, error, attempts, retryInMs })
    } else if (outcome.kind === 'dead') {
      const attempts = event.attempts + 1
      this.#options.logger.error(
        { event: ref, err: outcome.error, attempts },
        'dead letter: needs a person',
      )
      this.#lifecycle.tell('event:dead', { event: ref, error: outcome.error, attempts })
    }
  }
}

/** How a failure is written down. */
function toRecord(outcome: Outcome, deadLetterTopic: string | null): FailureRecord {
  const { event, token } = outcome.leased
  const asItWas = { id: event.id, token, status: 'pending', copyId: null } as const
  switch (outcome.kind) {
    case 'failed': {
      const { counts, retryInMs: delayMs, error } = outcome
      return { ...asItWas, counts, delayMs, error: describeError(error) }
    }
    case 'dead': {
      // A copy that dies is not copied again.
      const copied = deadLetterTopic !== null && event.topic !== deadLetterTopic
      const copyId = copied ? newEventId() : null
      const died = { ...asItWas, status: 'dead_letter', copyId } as const
      return { ...died, counts: true, delayMs: 0, error: describeError(outcome.error) }
    }
    default:
      return { ...asItWas, counts: false, delayMs: 0, error: null }
  }
}
