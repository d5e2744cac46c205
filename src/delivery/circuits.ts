// Broker health per destination: the whole broker (null) or one topic. An outage is not poison: while
// a circuit is open nothing is sent there but one probe at a time, and nobody pays with attempts.
// State lives in memory only; a restarted process finds out for itself with its first send.
import type { Lifecycle } from './lifecycle.ts'
import type { Logger } from './logger.ts'
import { Trouble } from './trouble.ts'

const FIRST_PROBE_MS = 500
const LAST_PROBE_MS = 2_000

const TEXTS = {
  level: 'warn',
  begins: 'destination out of reach, circuit opened',
  goesOn: 'destination still out of reach',
  over: 'destination is back, circuit closed',
} as const

/** null: the broker itself. */
type Destination = string | null

export interface Unreachable {
  readonly publisher: string
  readonly topic: Destination
}

interface OpenCircuit {
  state: 'open' | 'half-open' | 'probing'
  delayMs: number
  timer: NodeJS.Timeout
  error: Error
  readonly trouble: Trouble
}

export class Circuits {
  readonly #publisher: string
  readonly #lifecycle: Lifecycle
  readonly #logger: Logger
  readonly #onChance: () => void
  readonly #open = new Map<Destination, OpenCircuit>()

  /**
   * `publisher`: the name under which it is spoken of. `onChance`: a probe may go out, or the backlog may
   * drain; time to look for work.
   */
  constructor(publisher: string, lifecycle: Lifecycle, logger: Logger, onChance: () => void) {
    this.#publisher = publisher
    this.#lifecycle = lifecycle
    this.#logger = logger
    this.#onChance = onChance
  }

  /** Whether a send to the topic could begin now, be it as a probe. */
  accepts(topic: string): boolean {
    return this.#passable(null) && this.#passable(topic)
  }

  /** The same, and if it is a probe, it is taken: the next caller is turned away until it is back. */
  admit(topic: string): boolean {
    if (!this.accepts(topic)) return false
    for (const circuit of [this.#open.get(null), this.#open.get(topic)]) {
      if (circuit) circuit.state = 'probing'
    }
    return true
  }

  /** How many events the fallback may claim: none, a single probe, or all it wants. */
  claimable(wanted: number): number {
    if (!this.#open.has(null)) return wanted
    return this.#passable(null) ? 1 : 0
  }

  /** Every destination that is out of reach now. */
  unreachable(): Unreachable[] {
    return [...this.#open.keys()].map((topic) => ({ publisher: this.#publisher, topic }))
  }

  /** Topics whose events are better left in the table for now. */
  unreachableTopics(): string[] {
    return [...this.#open.keys()].filter(
      (topic): topic is string => topic !== null && !this.#passable(topic),
    )
  }

  failed(destination: Destination, error: Error): void {
    if (this.#open.get(destination)?.state !== 'open') this.#reopen(destination, error)
  }

  succeeded(topic: string): void {
    this.#close(null)
    this.#close(topic)
  }

  /** A probe that came back without a word on its destination leaves the circuit open. */
  endProbes(topics: Iterable<string>): void {
    for (const destination of [null, ...topics]) {
      const circuit = this.#open.get(destination)
      if (circuit?.state === 'probing') this.#reopen(destination, circuit.error)
    }
  }

  stop(): void {
    for (const circuit of this.#open.values()) clearTimeout(circuit.timer)
    this.#open.clear()
  }

  #passable(destination: Destination): boolean {
    const circuit = this.#open.get(destination)
    return circuit === undefined || circuit.state === 'half-open'
  }

  #reopen(destination: Destination, error: Error): void {
    const before = this.#open.get(destination)
    if (before) clearTimeout(before.timer)
    const delayMs = before ? Math.min(before.delayMs * 2, LAST_PROBE_MS) : FIRST_PROBE_MS
    const timer = setTimeout(() => this.#offerProbe(destination), delayMs).unref()
    const trouble = before?.trouble ?? new Trouble(this.#logger, TEXTS)
    this.#open.set(destination, { state: 'open', delayMs, timer, error, trouble })
    const publisher = this.#publisher
    trouble.happened({ err: error, publisher, topic: destination })
    this.#lifecycle.tell('circuit:open', { publisher, topic: destination, error })
  }

  #offerProbe(destination: Destination): void {
    const circuit = this.#open.get(destination)
    if (circuit?.state !== 'open') return
    circuit.state = 'half-open'
    this.#lifecycle.tell('circuit:half-open', this.#signal(destination))
    this.#onChance()
  }

  #close(destination: Destination): void {
    const circuit = this.#open.get(destination)
    if (!circuit) return
    clearTimeout(circuit.timer)
    this.#open.delete(destination)
    circuit.trouble.isOver({ publisher: this.#publisher, topic: destination })
    this.#lifecycle.tell('circuit:closed', this.#signal(destination))
    this.#onChance()
  }

  #signal(topic: Destination) {
    return { publisher: this.#publisher, topic, error: null }
  }
}
