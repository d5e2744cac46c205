// One publisher and all that works for it alone: both paths, the delivery, its circuits, its leases and the loop of
// its fallback. Pipelines share the table and the record of outcomes, but neither slots nor rounds nor room in memory:
// a publisher that hangs holds up its own events, and what follows them in their aggregates.
import type { NewLoop } from './background.ts'
import { Circuits, type Unreachable } from './circuit.ts'
import { Delivery } from './delivery.ts'
import { toError } from './errors.ts'
import { type EventRef, type OutboxEvent, orderingKey } from './events.ts'
import { type BirthLease, FastPath } from './fast-path.ts'
import { type LeasedEvent, Leases } from './leases.ts'
import type { Lifecycle } from './lifecycle.ts'
import type { Loop } from './loop.ts'
import type { ResolvedOptions } from './options.ts'
import { Poller, type Round } from './poller.ts'
import type { Publisher } from './publishers/publisher.ts'
import type { RoutedPublisher, TopicScope } from './publishers/router.ts'
import type { Settler } from './settle.ts'
import type { SavedEvent, Store } from './store/store.ts'

/** While there is a backlog, one round claims or records while another sends. */
const ROUNDS_AT_ONCE = 2

export interface PipelineParts {
  readonly store: Pick<Store<never>, 'claim' | 'renew'>
  readonly options: ResolvedOptions
  readonly settler: Settler
  readonly lifecycle: Lifecycle
  readonly newLoop: NewLoop
  /** Runs one round of the fallback and keeps in mind how it went. */
  readonly watchPoll: (round: () => Promise<Round>) => Promise<Round>
}

export class Pipeline {
  readonly name: string
  readonly topics: TopicScope
  readonly #parts: PipelineParts
  readonly #publisher: Publisher
  readonly #leases: Leases
  readonly #circuits: Circuits
  readonly #delivery: Delivery
  readonly #fastPath: FastPath
  readonly #poller: Poller
  readonly #pollLoop: Loop
  /** Aggregates of which an event was left to the fallback, perhaps for one that another pipeline has. */
  readonly #leftBehind = new Set<string>()

  constructor(destination: RoutedPublisher, parts: PipelineParts) {
    const { name, publisher, topics } = destination
    const { store, options, settler, lifecycle, newLoop } = parts
    const wake = () => this.wake()
    const leases = new Leases(store, options.thresholdMs)
    const circuits = new Circuits(name, lifecycle, options.logger, wake)
    const delivery = new Delivery(publisher, options, circuits, leases, settler)
    this.#fastPath = new FastPath(options, circuits, leases, publisher.perAggregate ?? false, {
      deliver: async (batch) => {
        const delivered = await delivery.deliver(batch, 'immediate')
        if (delivered.unsent.size > 0) void delivered.recorded.then(wake)
        return delivered
      },
      // What waits for an event in the hands of another instance: nobody tells when that one has gone out.
      giveBack: async (leased) => {
        this.#remember(leased)
        await delivery.giveBack(leased, 'immediate')
        this.#pollLoop.watch()
      },
    })
    this.#poller = new Poller(store, options, destination, circuits, leases, settler, lifecycle, {
      deliver: (batch) => delivery.deliver(batch, 'fallback'),
      giveBack: (leased) => delivery.giveBack(leased, 'fallback'),
    })
    const step = options.destinations.length > 1 ? `poll for ${name}` : 'poll'
    this.#pollLoop = newLoop(step, options.pollIntervalMs, () => this.#poll())
    this.name = name
    this.topics = topics
    this.#parts = parts
    this.#publisher = publisher
    this.#leases = leases
    this.#circuits = circuits
    this.#delivery = delivery
  }

  /** For the log. */
  get description() {
    return { publisher: this.name, settlesWithinMs: this.#publisher.settlesWithinMs }
  }

  /** Asked before the save: would it send these at once? */
  wants(events: readonly EventRef[]): boolean {
    return this.#fastPath.wants(events)
  }

  /** Called after COMMIT, with the ids of those that another pipeline's event comes before. */
  accept(
    events: readonly SavedEvent[],
    lease: BirthLease,
    behindOthers?: ReadonlySet<string>,
  ): void {
    this.#fastPath.accept(events, lease, behindOthers)
  }

  /** An event of another pipeline. */
  passOver(event: OutboxEvent): void {
    this.#fastPath.passOver(event)
  }

  /** An event, of any pipeline, that nothing has to wait for any more. */
  gone(event: EventRef): void {
    if (this.#leftBehind.size > 0 && this.#leftBehind.delete(orderingKey(event))) this.wake()
  }

  /** Lets the fallback look now. */
  wake(): void {
    this.#pollLoop.wake()
  }

  pollOnce(): Promise<Round> {
    return this.#parts.watchPoll(() => this.#poller.runOnce())
  }

  unreachable(): Unreachable[] {
    return this.#circuits.unreachable()
  }

  drop(leased: readonly LeasedEvent[]): void {
    this.#leases.drop(leased)
  }

  async renewOnce(): Promise<void> {
    this.#fastPath.sweep()
    await this.#leases.renewOnce()
  }

  start(): void {
    void this.#connect()
    this.#fastPath.open()
    if (this.#parts.options.poller) this.#pollLoop.start()
  }

  /** Takes nothing more; resolves when what was under way has an outcome. */
  async drain(): Promise<void> {
    this.#fastPath.close()
    await Promise.all([this.#pollLoop.stop(), this.#fastPath.idle()])
    await this.#delivery.idle()
  }

  /** Gives back what has not been sent yet. */
  async release(): Promise<void> {
    await this.#fastPath.release()
  }

  async close(): Promise<void> {
    this.#circuits.stop()
    try {
      await this.#publisher.disconnect?.()
    } catch (thrown) {
      const error = toError(thrown)
      const { options, lifecycle } = this.#parts
      options.logger.warn({ err: error, publisher: this.name }, 'could not disconnect cleanly')
      lifecycle.tell('error', { step: 'disconnect', error })
    }
  }

  /** Answers whether there may be more to do. */
  async #poll(): Promise<boolean> {
    const { claimed, isFull } = await this.pollOnce()
    if (!isFull) return claimed > 0
    // Two rounds at once take from each other no more than two instances do.
    const ending = new AbortController()
    const lines = Array.from({ length: ROUNDS_AT_ONCE }, () => this.#pollWhileFull(ending))
    const failed = (await Promise.allSettled(lines)).find(({ status }) => status === 'rejected')
    if (failed) throw (failed as PromiseRejectedResult).reason
    return true
  }

  // A failure ends the other line too, after its round: told at the end of a long backlog it would help nobody.
  async #pollWhileFull(ending: AbortController): Promise<void> {
    const mayGoOn = () => this.#pollLoop.isStarted && !ending.signal.aborted
    try {
      while (mayGoOn() && (await this.pollOnce()).isFull);
    } catch (error) {
      ending.abort()
      throw error
    }
  }

  // A broker that is away is no error: events wait in the table, and the circuit tells of sends.
  async #connect(): Promise<void> {
    const { logger } = this.#parts.options
    try {
      await this.#publisher.connect?.()
    } catch (error) {
      const fields = { err: error, publisher: this.name }
      logger.warn(fields, 'could not connect yet; events wait in the table')
    }
  }

  // Bounded as what is held in memory is. What is forgotten goes out with the next look of the loop.
  #remember(leased: readonly LeasedEvent[]): void {
    const { destinations, inOrder, maxInFlight } = this.#parts.options
    if (destinations.length === 1 || !inOrder) return
    if (this.#leftBehind.size + leased.length > maxInFlight) this.#leftBehind.clear()
    for (const { event } of leased) this.#leftBehind.add(orderingKey(event))
  }
}
