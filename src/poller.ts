// The fallback: claims what nobody holds any more and hands it to the same delivery as the fast path.
// A crash after a claim costs nothing but the lease: the rows come back when it ends.
import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import type { Circuits } from './circuit.ts'
import { ClaimSize } from './claim-size.ts'
import type { NextStep } from './delivery.ts'
import { refOf } from './events.ts'
import type { LeasedEvent, Leases } from './leases.ts'
import type { Lifecycle } from './lifecycle.ts'
import type { ResolvedOptions } from './options.ts'
import type { RoutedPublisher } from './publishers/router.ts'
import type { Settler } from './settle.ts'
import type { Store } from './store/store.ts'

export interface Round {
  readonly claimed: number
  /** It took as many as it could: there may be more. */
  readonly isFull: boolean
}

const NOTHING: Round = { claimed: 0, isFull: false }

export class Poller {
  readonly #store: Pick<Store<never>, 'claim'>
  readonly #options: ResolvedOptions
  readonly #destination: RoutedPublisher
  readonly #circuits: Circuits
  readonly #leases: Leases
  readonly #settler: Pick<Settler, 'isBehind'>
  readonly #lifecycle: Lifecycle
  readonly #size: ClaimSize
  readonly #next: NextStep

  constructor(
    store: Pick<Store<never>, 'claim'>,
    options: ResolvedOptions,
    destination: RoutedPublisher,
    circuits: Circuits,
    leases: Leases,
    settler: Pick<Settler, 'isBehind'>,
    lifecycle: Lifecycle,
    next: NextStep,
  ) {
    this.#store = store
    this.#options = options
    this.#destination = destination
    this.#circuits = circuits
    this.#leases = leases
    this.#settler = settler
    this.#lifecycle = lifecycle
    this.#size = new ClaimSize(options, destination.publisher)
    this.#next = next
  }

  /** One claim and its delivery, recorded. */
  async runOnce(): Promise<Round> {
    // Rows whose ack is still to be recorded look abandoned once their lease has ended.
    if (this.#settler.isBehind) return NOTHING
    const size = this.#size.next
    const limit = this.#circuits.claimable(size)
    if (limit === 0) return NOTHING
    const batch = await this.#claim(limit).catch((error: unknown) => {
      this.#size.halve()
      throw error
    })
    if (batch.length === 0) {
      this.#size.reset()
      return NOTHING
    }
    if (!batch.some((leased) => this.#leases.isFresh(leased))) {
      await this.#giveUp(batch)
      // Half as many may be in time. Of one at a time the next would be as late as this one.
      return size > 1 ? { claimed: batch.length, isFull: false } : NOTHING
    }
    this.#size.learn(batch)
    this.#lifecycle.tell('batch:claimed', { events: batch.map(({ event }) => refOf(event)) })
    const { unsent, recorded } = await this.#next.deliver(batch)
    await recorded
    const counts = { claimed: batch.length, done: batch.length - unsent.size }
    const publisher = this.#destination.name
    this.#options.logger.debug({ publisher, ...counts }, 'a round of the fallback is over')
    return { claimed: batch.length, isFull: batch.length === size }
  }

  async #giveUp(batch: readonly LeasedEvent[]): Promise<void> {
    const { thresholdMs, logger } = this.#options
    this.#size.halve()
    logger.warn(
      {
        publisher: this.#destination.name,
        claimed: batch.length,
        next: this.#size.next,
        thresholdMs,
      },
      'a claim took longer than half the threshold',
    )
    await this.#next.giveBack(batch)
  }

  async #claim(limit: number): Promise<LeasedEvent[]> {
    const { thresholdMs, workerId } = this.#options
    const { only, except } = this.#destination.topics
    // Each claim has its own token: what this process did with the row before is fenced off too.
    const token = randomUUID()
    const deadline = performance.now() + thresholdMs
    const events = await this.#store.claim({
      lease: { token, workerId, ms: thresholdMs },
      limit,
      exceptTopics: [...except, ...this.#circuits.unreachableTopics()],
      onlyTopics: only,
    })
    const batch = events.map((event) => ({ event, token, committedAt: null, deadline }))
    this.#leases.hold(batch)
    return batch
  }
}
