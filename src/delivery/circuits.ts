// Reachability of each destination: the whole broker (null) or one topic. An outage is not the fault of an event: while
// a circuit is open, only one probe at a time is sent there, and no event uses up attempts. The state is in memory
// only; a restarted process learns it with its first send. Longer than other files: the states of a circuit and everything that
// moves it from one to the next are here, and nowhere else.
import { performance } from 'node:perf_hooks'
import type { PublishResult } from '../event/publish-result.ts'
import type { Lifecycle } from '../lifecycle.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Bell } from '../runtime/bell.ts'
import { Trouble } from '../runtime/trouble.ts'
import type { LeasedEvent } from './leased-event.ts'
import { readReach } from './reach.ts'

const FIRST_PROBE_MS = 500
const LAST_PROBE_MS = 2_000
/** A topic without any event for this long has no trouble: another instance may have sent what it had. */
const FORGET_MS = 60_000

const TEXTS = {
  level: 'warn',
  begins: 'sends to a destination fail, circuit opened',
  goesOn: 'sends to a destination still fail',
  over: 'sends to a destination work again, circuit closed',
} as const

/** null: the broker itself. */
type Destination = string | null

export interface Unreachable {
  readonly publisher: string
  readonly topic: Destination
  /** When its circuit opened, by performance.now(). */
  readonly since: number
  /** The error of the last send there. */
  readonly error: Error
}

/** How the search for a destination that is out of reach goes. */
export interface Probing {
  readonly topic: Destination
  readonly failedProbes: number
  /** Whether the next event for it may go out now, as a probe. */
  readonly isHalfOpen: boolean
}

interface OpenCircuit {
  state: 'open' | 'half-open' | 'probing'
  readonly since: number
  readonly failedProbes: number
  delayMs: number
  timer: NodeJS.Timeout
  error: Error
  /** Whether a claim has just found no event to probe it with. */
  hasNoProbe: boolean
  /** Since when claims have found none, by performance.now(). */
  unprobedSince: number | null
  readonly trouble: Trouble
}

export interface CircuitsParts {
  /** The publisher's name in logs and lifecycle events. */
  readonly publisher: string
  readonly lifecycle: Lifecycle
  readonly logger: Logger
  /** Rung when a probe may go out or a backlog may drain. */
  readonly bell: Bell
}

/** What the circuits mean for claims. */
export interface Claimable {
  readonly broker: 'in reach' | 'to probe' | 'out of reach'
  /** Topics of which nothing may be claimed now, not even a probe. */
  readonly blockedTopics: readonly string[]
  /** Topics of which no more than a probe may be claimed. */
  readonly halfOpenTopics: readonly string[]
  /** Those of them for which the last look did not fail to find an event. */
  readonly topicsToProbe: readonly string[]
}

export class Circuits {
  readonly #publisher: string
  readonly #lifecycle: Lifecycle
  readonly #logger: Logger
  readonly #bell: Bell
  readonly #open = new Map<Destination, OpenCircuit>()
  /** When the broker last responded to a send, by performance.now(). */
  #answeredAt = Number.NEGATIVE_INFINITY

  constructor({ publisher, lifecycle, logger, bell }: CircuitsParts) {
    this.#publisher = publisher
    this.#lifecycle = lifecycle
    this.#logger = logger
    this.#bell = bell
  }

  /** Whether a send to the topic could begin now, even if only as a probe. */
  isPassable(topic: string): boolean {
    return this.#letsPass(null) && this.#letsPass(topic)
  }

  /** Like isPassable(), but takes the probe if it is one: other callers are refused until the probe has ended. */
  admit(topic: string): boolean {
    if (!this.isPassable(topic)) return false
    for (const circuit of [this.#open.get(null), this.#open.get(topic)]) {
      if (circuit) circuit.state = 'probing'
    }
    return true
  }

  claimable(): Claimable {
    const topics = [...this.#open.keys()].filter((topic) => topic !== null)
    const broker = this.#letsPass(null) ? 'to probe' : 'out of reach'
    const halfOpenTopics = topics.filter((topic) => this.#letsPass(topic))
    return {
      broker: this.#open.has(null) ? broker : 'in reach',
      blockedTopics: topics.filter((topic) => !this.#letsPass(topic)),
      halfOpenTopics,
      topicsToProbe: halfOpenTopics.filter((topic) => !this.#open.get(topic)!.hasNoProbe),
    }
  }

  /** Every destination that is out of reach now. */
  unreachable(): Unreachable[] {
    return [...this.#open].map(([topic, { since, error }]) => {
      return { publisher: this.#publisher, topic, since, error }
    })
  }

  probes(): Probing[] {
    return [...this.#open].map(([topic, { failedProbes, state }]) => {
      return { topic, failedProbes, isHalfOpen: state === 'half-open' }
    })
  }

  /**
   * Learns from the results of a batch. Even a refusal shows that the destination responds. A topic with one transient
   * failure is in trouble, whatever the results of its other events. But while the broker responds to other sends, it is not
   * in trouble as a whole.
   */
  learn(batch: readonly LeasedEvent[], results: readonly PublishResult[], begunAt: number): void {
    const topics = topicsOf(batch)
    const { responding, hasAnswered, wasSent, failures } = readReach(batch, results)
    const isInReach = hasAnswered || this.#answersSince(begunAt)
    for (const { topic, failure, isUnsent } of failures) {
      const destination = isInReach || isUnsent ? topic : null
      const circuit = this.#open.get(destination)
      // A send that was given up got a response after all, which shows more than that it took too long.
      if (circuit?.state === 'open') circuit.error = failure.error
      this.failed(destination, failure.error)
    }
    if (hasAnswered) {
      this.#answeredAt = performance.now()
      this.#close(null)
    }
    for (const topic of responding) this.succeeded(topic)
    if (wasSent) this.endProbes(topics)
    else this.#offerAgain(topics)
  }

  /** A send has not settled in time, so its topics count as out of reach, or the broker if it responds to no other send. */
  noAnswer(batch: readonly LeasedEvent[], error: Error, begunAt: number): void {
    const topics = topicsOf(batch)
    for (const destination of this.#answersSince(begunAt) ? topics : [null]) {
      this.failed(destination, error)
    }
    this.endProbes(topics)
  }

  /** Whether the broker has responded to another send in the second half of the time since then. */
  #answersSince(begunAt: number): boolean {
    return this.#answeredAt > (begunAt + performance.now()) / 2
  }

  failed(destination: Destination, error: Error): void {
    if (this.#open.get(destination)?.state !== 'open') this.#reopen(destination, error)
  }

  succeeded(topic: string): void {
    this.#close(null)
    this.#close(topic)
  }

  /** Reopens circuits whose probe ended without showing whether the destination is reachable. */
  endProbes(topics: Iterable<string>): void {
    for (const destination of [null, ...topics]) {
      const circuit = this.#open.get(destination)
      if (circuit?.state === 'probing') this.#reopen(destination, circuit.error)
    }
  }

  /** Nothing was sent, so the probe is left for another event: what cannot be made must not use up every probe. */
  #offerAgain(topics: Iterable<string>): void {
    for (const destination of [null, ...topics]) {
      const circuit = this.#open.get(destination)
      if (circuit?.state !== 'probing') continue
      circuit.state = 'half-open'
      this.#bell.ring()
    }
  }

  /** A claim found nothing of the topic. The next look for an event to probe it with waits as long as a probe. */
  noProbeFor(topic: string): void {
    const circuit = this.#open.get(topic)
    if (circuit?.state !== 'half-open' || circuit.hasNoProbe) return
    circuit.unprobedSince ??= performance.now()
    if (performance.now() - circuit.unprobedSince >= FORGET_MS) return this.#forget(topic)
    circuit.hasNoProbe = true
    circuit.timer = setTimeout(() => {
      circuit.hasNoProbe = false
      this.#bell.ring()
    }, circuit.delayMs).unref()
  }

  stop(): void {
    for (const circuit of this.#open.values()) clearTimeout(circuit.timer)
    this.#open.clear()
  }

  #letsPass(destination: Destination): boolean {
    const circuit = this.#open.get(destination)
    return circuit === undefined || circuit.state === 'half-open'
  }

  #reopen(destination: Destination, error: Error): void {
    const before = this.#open.get(destination)
    if (before) clearTimeout(before.timer)
    const delayMs = before ? Math.min(before.delayMs * 2, LAST_PROBE_MS) : FIRST_PROBE_MS
    const timer = setTimeout(() => this.#offerProbe(destination), delayMs).unref()
    const trouble = before?.trouble ?? new Trouble(this.#logger, TEXTS)
    const since = before?.since ?? performance.now()
    this.#open.set(destination, {
      state: 'open',
      since,
      failedProbes: before ? before.failedProbes + 1 : 0,
      delayMs,
      timer,
      error,
      hasNoProbe: false,
      unprobedSince: null,
      trouble,
    })
    const publisher = this.#publisher
    trouble.happened({ err: error, publisher, topic: destination })
    this.#lifecycle.tell('circuit:open', { publisher, topic: destination, error })
  }

  #offerProbe(destination: Destination): void {
    const circuit = this.#open.get(destination)
    if (circuit?.state !== 'open') return
    circuit.state = 'half-open'
    this.#lifecycle.tell('circuit:half-open', this.#signal(destination))
    this.#bell.ring()
  }

  #close(destination: Destination): void {
    const circuit = this.#open.get(destination)
    if (!circuit) return
    circuit.trouble.end({ publisher: this.#publisher, topic: destination })
    this.#forget(destination)
  }

  #forget(destination: Destination): void {
    clearTimeout(this.#open.get(destination)?.timer)
    this.#open.delete(destination)
    this.#lifecycle.tell('circuit:closed', this.#signal(destination))
    this.#bell.ring()
  }

  #signal(topic: Destination) {
    return { publisher: this.#publisher, topic }
  }
}

function topicsOf(batch: readonly LeasedEvent[]): Set<string> {
  return new Set(batch.map(({ event }) => event.topic))
}
