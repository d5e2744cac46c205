// The one place that sends a batch and classifies what came back. Both paths meet here.
// A crash during a send leaves the rows leased; the fallback sends them again once the lease ends.
import { performance } from 'node:perf_hooks'
import type { Circuits } from './circuit.ts'
import { formatDuration } from './duration.ts'
import { PublishError, toError } from './errors.ts'
import { laneKey, orderingKey, type OutboxEvent } from './events.ts'
import { groupBy } from './group-by.ts'
import type { LeasedEvent, Leases } from './leases.ts'
import type { Path } from './lifecycle.ts'
import type { ResolvedOptions } from './options.ts'
import type { Publisher, PublishFailure, PublishResult } from './publishers/publisher.ts'
import { raceTimeout } from './race-timeout.ts'
import { classifyFailure, holdsOthers, splitInOrder } from './rules.ts'
import type { Outcome, Settler } from './settle.ts'

/** Delivery as both paths see it: the way on, and the way out for what cannot take it. */
export interface NextStep {
  readonly deliver: (batch: readonly LeasedEvent[]) => Promise<Delivered>
  /** Frees rows for the fallback at once. */
  readonly giveBack: (leased: readonly LeasedEvent[]) => Promise<void>
}

export interface Delivered {
  /** What may not be overtaken: whatever follows one of these in its aggregate has to wait. */
  readonly unsent: ReadonlySet<LeasedEvent>
  /** Resolves when the outcomes are in the database. */
  readonly recorded: Promise<unknown>
}

export class Delivery {
  readonly #publisher: Publisher
  readonly #options: ResolvedOptions
  readonly #circuits: Circuits
  readonly #leases: Leases
  readonly #settler: Settler
  readonly #lateAnswers = new Set<Promise<void>>()

  constructor(
    publisher: Publisher,
    options: ResolvedOptions,
    circuits: Circuits,
    leases: Leases,
    settler: Settler,
  ) {
    this.#publisher = publisher
    this.#options = options
    this.#circuits = circuits
    this.#leases = leases
    this.#settler = settler
  }

  get #timeoutMs(): number {
    return this.#publisher.timeoutMs ?? this.#options.publishTimeoutMs
  }

  /** Sends what may be sent. Never rejects. */
  async deliver(batch: readonly LeasedEvent[], path: Path): Promise<Delivered> {
    if (!this.#publisher.perAggregate) return await this.#deliverTogether(batch, path)
    const lanes = groupBy(batch, ({ event }) => orderingKey(event))
    const parts = await Promise.all(
      [...lanes.values()].map((lane) => this.#deliverTogether(lane, path)),
    )
    return {
      unsent: new Set(parts.flatMap(({ unsent }) => [...unsent])),
      recorded: Promise.all(parts.map(({ recorded }) => recorded)),
    }
  }

  async #deliverTogether(batch: readonly LeasedEvent[], path: Path): Promise<Delivered> {
    const { taken: admitted, left: turnedAway } = this.#admit(batch)
    const results = admitted.length > 0 ? await this.#send(admitted, path) : []
    if (results === 'unknown') {
      return { unsent: new Set(batch), recorded: this.giveBack(turnedAway, path) }
    }
    const outcomes = this.#classify(admitted, results, path)
    const unsent = outcomes.filter(({ kind }) => holdsOthers(kind, this.#options.deadLettersHold))
    const recorded = Promise.all([this.#settler.record(outcomes), this.giveBack(turnedAway, path)])
    return { unsent: new Set([...turnedAway, ...unsent.map(({ leased }) => leased)]), recorded }
  }

  // Rule 4 and the circuits.
  #admit(batch: readonly LeasedEvent[]) {
    return splitInOrder(
      batch,
      ({ event }) => laneKey(event, this.#options.inOrder),
      (leased) => this.#leases.isFresh(leased) && this.#circuits.admit(leased.event.topic),
    )
  }

  async #send(batch: readonly LeasedEvent[], path: Path) {
    const sending = this.#publish(batch.map(({ event }) => event))
    const results = await raceTimeout(sending, this.#timeoutMs)
    if (results !== 'late') return results
    const waited = formatDuration(this.#timeoutMs)
    this.#circuits.failed(null, new PublishError('PUBLISH_TIMEOUT', `no answer in ${waited}`))
    this.#circuits.endProbes(topicsOf(batch))
    const answer = this.#awaitLateAnswer(sending, batch, path).finally(() => {
      this.#lateAnswers.delete(answer)
    })
    this.#lateAnswers.add(answer)
    return 'unknown'
  }

  // A send cannot be cancelled. Its rows stay leased until the client gives up; then they are let go.
  // An answer after that still counts if it is an ack, and is fenced if it is not.
  async #awaitLateAnswer(
    sending: Promise<readonly PublishResult[]>,
    batch: readonly LeasedEvent[],
    path: Path,
  ): Promise<void> {
    const patienceMs = (this.#publisher.settlesWithinMs ?? 0) - this.#timeoutMs
    const record = (results: readonly PublishResult[]) =>
      this.#settler.record(this.#classify(batch, results, path))
    const results = await raceTimeout(sending, Math.max(0, patienceMs))
    if (results !== 'late') return await record(results)
    this.#leases.drop(batch)
    void sending.then(record)
  }

  async #publish(events: readonly OutboxEvent[]): Promise<readonly PublishResult[]> {
    let error: Error
    const { deadLettersHold } = this.#options
    try {
      const results = await this.#publisher.publish(events, { deadLettersHold })
      if (results.length === events.length && results.every(isResult)) return results
      error = new PublishError(
        'PUBLISH_FAILED',
        `publisher ${this.#publisher.name} did not answer with one result per event`,
      )
    } catch (thrown) {
      error = toError(thrown)
    }
    return events.map(() => ({ ok: false, kind: 'transient', error }))
  }

  #classify(
    batch: readonly LeasedEvent[],
    results: readonly PublishResult[],
    path: Path,
  ): Outcome[] {
    const now = performance.now()
    this.#informCircuits(batch, results)
    return batch.map((leased, n): Outcome => {
      const result = results[n]!
      if (!result.ok) {
        return { leased, path, ...classifyFailure(leased.event, result, this.#options) }
      }
      const latencyMs = leased.committedAt === null ? null : now - leased.committedAt
      return { leased, path, kind: 'published', success: result, latencyMs }
    })
  }

  // Even a refusal shows that the destination answers. A topic with one transient failure is in trouble,
  // whatever its other events say; but while another topic answers, the broker as a whole is not.
  #informCircuits(batch: readonly LeasedEvent[], results: readonly PublishResult[]): void {
    const topics = topicsOf(batch)
    const answering = new Set(topics)
    const failures: { topic: string; failure: PublishFailure }[] = []
    for (const [n, result] of results.entries()) {
      if (result.ok || result.kind === 'permanent' || result.kind === 'rejected') continue
      const { topic } = batch[n]!.event
      answering.delete(topic)
      if (result.kind === 'transient') failures.push({ topic, failure: result })
    }
    for (const { topic, failure } of failures) {
      const topicAlone = failure.scope === 'topic' || answering.size > 0
      this.#circuits.failed(topicAlone ? topic : null, failure.error)
    }
    for (const topic of answering) this.#circuits.succeeded(topic)
    this.#circuits.endProbes(topics)
  }

  /** Resolves when no send is left whose outcome is unknown. */
  async idle(): Promise<void> {
    await Promise.all(this.#lateAnswers)
  }

  /** For whoever holds leases that come to nothing: frees the rows at once instead of when they end. */
  async giveBack(leased: readonly LeasedEvent[], path: Path): Promise<void> {
    if (leased.length === 0) return
    await this.#settler.record(leased.map((one) => ({ leased: one, path, kind: 'untried' })))
  }
}

const KINDS = new Set<unknown>(['transient', 'permanent', 'rejected', 'held'])

/** Publishers are also written in JavaScript. */
function isResult(result: PublishResult | null | undefined): boolean {
  return result?.ok === true || (result?.ok === false && KINDS.has(result.kind))
}

function topicsOf(batch: readonly LeasedEvent[]): Set<string> {
  return new Set(batch.map(({ event }) => event.topic))
}
