// The one place that records outcomes: batched across sends, each batch in a fresh transaction.
// A crash before a record is written sends the event again, so consumers dedupe on the event id.
// While the database is away outcomes wait here; they are bounded because a row counts as in flight
// until its outcome is recorded.
import { describeError, toError } from './errors.ts'
import { refOf } from './events.ts'
import type { LeasedEvent, Leases } from './leases.ts'
import type { Lifecycle, Path } from './lifecycle.ts'
import type { Logger } from './logger.ts'
import type { PublishSuccess } from './publishers/publisher.ts'
import type { FailureRecord, Store } from './store/store.ts'

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

const RETRY_MS = { first: 100, last: 5_000 }

interface Entry {
  outcome: Outcome
  recorded: () => void
}

export class Settler {
  readonly #store: Pick<Store<never>, 'settlePublished' | 'settleFailed'>
  readonly #leases: Leases
  readonly #lifecycle: Lifecycle
  readonly #logger: Logger
  readonly #onRecovered: () => void
  #waiting: Entry[] = []
  #flushing: Promise<void> | null = null
  #patient = true
  #behind = false

  constructor(
    store: Pick<Store<never>, 'settlePublished' | 'settleFailed'>,
    leases: Leases,
    lifecycle: Lifecycle,
    logger: Logger,
    onRecovered: () => void,
  ) {
    this.#store = store
    this.#leases = leases
    this.#lifecycle = lifecycle
    this.#logger = logger
    this.#onRecovered = onRecovered
  }

  /** Resolves when all are recorded; never rejects. */
  async record(outcomes: readonly Outcome[]): Promise<void> {
    // A flush of nothing would end before anybody could know that it had begun.
    if (outcomes.length === 0) return
    const recorded = outcomes.map(
      (outcome) =>
        new Promise<void>((resolve) => this.#waiting.push({ outcome, recorded: resolve })),
    )
    this.#flushing ??= this.#flush()
    await Promise.all(recorded)
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
    let retryMs = RETRY_MS.first
    while (this.#waiting.length > 0) {
      const batch = this.#waiting
      this.#waiting = []
      try {
        await this.#write(batch.map(({ outcome }) => outcome))
        for (const { recorded } of batch) recorded()
        retryMs = RETRY_MS.first
        if (this.#behind) {
          this.#behind = false
          this.#onRecovered()
        }
      } catch (thrown) {
        this.#behind = this.#patient
        this.#lifecycle.tell('error', { step: 'settle', error: toError(thrown) })
        this.#logger.error({ err: thrown, outcomes: batch.length }, 'could not record outcomes')
        if (!this.#patient) {
          this.#leases.drop(batch.map(({ outcome }) => outcome.leased))
          for (const { recorded } of batch) recorded()
          continue
        }
        // Both statements may be repeated: published is idempotent, a failure is fenced by its token.
        this.#waiting.unshift(...batch)
        await new Promise((resolve) => setTimeout(resolve, retryMs))
        retryMs = Math.min(retryMs * 2, RETRY_MS.last)
      }
    }
    // In the same turn as the look above: an outcome that comes later finds nobody flushing.
    this.#flushing = null
  }

  async #write(outcomes: readonly Outcome[]): Promise<void> {
    const published = outcomes.filter((outcome) => outcome.kind === 'published')
    const failed = outcomes.filter((outcome) => outcome.kind !== 'published')
    if (published.length > 0) {
      await this.#store.settlePublished(published.map(({ leased }) => leased.event.id))
    }
    const fenced =
      failed.length > 0 ? await this.#store.settleFailed(failed.map(toFailureRecord)) : new Set()
    this.#leases.drop(outcomes.map(({ leased }) => leased))
    for (const outcome of outcomes) {
      if (outcome.kind === 'published' || fenced.has(outcome.leased.event.id)) this.#tell(outcome)
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
        this.#logger.warn(
          { event: ref, err: error, attempts, retryInMs },
          'event failed, will retry',
        )
      }
      this.#lifecycle.tell('event:failed', { event: ref, path, error, attempts, retryInMs })
    } else if (outcome.kind === 'dead') {
      const attempts = event.attempts + 1
      this.#logger.error(
        { event: ref, err: outcome.error, attempts },
        'dead letter: needs a person',
      )
      this.#lifecycle.tell('event:dead', { event: ref, error: outcome.error, attempts })
    }
  }
}

function toFailureRecord(outcome: Outcome): FailureRecord {
  const { event, token } = outcome.leased
  const record = { id: event.id, token, status: 'pending', counts: false, delayMs: 0 } as const
  switch (outcome.kind) {
    case 'failed': {
      const { counts, retryInMs, error } = outcome
      return { ...record, counts, delayMs: retryInMs, error: describeError(error) }
    }
    case 'dead': {
      const error = describeError(outcome.error)
      return { ...record, status: 'dead_letter', counts: true, error }
    }
    default:
      return { ...record, error: null }
  }
}
