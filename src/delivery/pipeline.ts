// One publisher and everything that works for it alone, wired from the record back to the two entrances. Pipelines
// share the table and the record of outcomes, but not slots, rounds or room in memory: a publisher that hangs delays
// only its own events.
import { toError } from '../errors.ts'
import type { Lifecycle } from '../lifecycle.ts'
import type { ResolvedOptions } from '../options/options.ts'
import type { RoutedPublisher, TopicSelection } from '../publishers/router.ts'
import { askToClose, beginUse, endUse } from '../publishers/users.ts'
import type { NewLoop } from '../runtime/background.ts'
import { awaitRing, Bell } from '../runtime/bell.ts'
import type { Loop } from '../runtime/loop.ts'
import type { Store } from '../store/outbox/outbox-store.ts'
import type { PublisherActivity } from '../telemetry/telemetry.ts'
import { Circuits } from './circuits.ts'
import { type Errand, Fallback } from './fallback.ts'
import { Gate } from './gate.ts'
import { Immediate } from './immediate.ts'
import { Leases } from './leases.ts'
import type { OwnEvents } from './own-events.ts'
import type { Pauses } from './pauses.ts'
import type { ProbeChances } from './probe-chances.ts'
import type { Recorder } from './record.ts'
import { Sender } from './send.ts'
import { Upcoming } from './upcoming.ts'

/** How long the fallback watches for an event beyond the lease of the one before it. */
const WATCH_ON_MS = 1_000

/** drain() looks at least this often whether its time is over. */
const LONGEST_WAIT_MS = 250

export interface PipelineParts {
  readonly store: Pick<Store<never>, 'claim' | 'dueTopics' | 'renew' | 'standing' | 'wake'>
  readonly options: ResolvedOptions
  readonly lifecycle: Lifecycle
  readonly recorder: Recorder
  readonly newLoop: NewLoop
  readonly pauses: Pauses
  readonly own: OwnEvents
  /** Rung when any fallback may have something to do. */
  readonly bell: Bell
}

export class Pipeline {
  readonly topics: TopicSelection
  readonly circuits: Circuits
  readonly leases: Leases
  readonly gate: Gate
  readonly immediate: Immediate
  readonly fallback: Fallback
  /** Rung when a destination may be probed, or is back. */
  readonly probeDue: Bell
  readonly #destination: RoutedPublisher
  readonly #parts: PipelineParts
  readonly #sender: Sender
  readonly #pollLoop: Loop
  readonly #upcoming: Upcoming
  /** The uses of the publisher by calls that send. */
  readonly #calls = new Set<object>()
  /** Those of them that stop() has ended. */
  #ended: readonly object[] = []

  constructor(destination: RoutedPublisher, parts: PipelineParts) {
    const { name, publisher, topics } = destination
    const { store, options, lifecycle, recorder, newLoop, pauses, own, bell } = parts
    const [probeDue, leftBehind, waiting] = [new Bell(), new Bell(), new Bell()]
    const circuits = new Circuits({
      publisher: name,
      lifecycle,
      logger: options.logger,
      bell: probeDue,
    })
    const leases = new Leases(store, options.thresholdMs)
    const { maxInFlight } = options
    const gate = new Gate({ circuits, pauses, leases, topics, maxInFlight })
    const sender = new Sender({ name, publisher, lifecycle, options, gate, circuits, recorder })
    const shared = { options, gate, leases, sender, recorder }
    const watchMs = options.thresholdMs + WATCH_ON_MS
    const upcoming = new Upcoming()
    const fallback = new Fallback({ ...shared, store, destination, lifecycle, waiting, upcoming })
    const step = options.destinations.length > 1 ? `poll for ${name}` : 'poll'
    const run = (mayGoOn: () => boolean) => {
      upcoming.forgetPast()
      return fallback.run(mayGoOn)
    }
    const intervalMs = () => Math.min(options.pollIntervalMs, upcoming.inMs)
    const pollLoop = newLoop(step, intervalMs, run, watchMs)
    probeDue.onRing(() => pollLoop.look())
    // An event may be behind one whose record is under way, or that another process holds: until its lease ends, unless
    // that process renews it.
    for (const one of [leftBehind, waiting, bell]) one.onRing(() => pollLoop.watch())

    this.topics = topics
    this.circuits = circuits
    this.leases = leases
    this.gate = gate
    this.immediate = new Immediate({ ...shared, own, publisher, leftBehind })
    this.fallback = fallback
    this.probeDue = probeDue
    this.#destination = destination
    this.#parts = parts
    this.#sender = sender
    this.#pollLoop = pollLoop
    this.#upcoming = upcoming
  }

  get name(): string {
    return this.#destination.name
  }

  get activity(): PublisherActivity {
    const unreachable = this.circuits.unreachable().map(({ topic }) => topic)
    return { publisher: this.name, inFlight: this.leases.size, unreachable }
  }

  /** For the log. */
  get description() {
    return { publisher: this.name, settlesWithinMs: this.#destination.publisher.settlesWithinMs }
  }

  /** Lets the fallback look for events that were saved without a lease. */
  look(): void {
    this.#pollLoop.watch()
  }

  /** Lets the fallback look when a scheduled event is due. */
  lookIn(ms: number): void {
    this.#upcoming.expect(ms)
    this.#pollLoop.wakeWithin(this.#upcoming.inMs)
  }

  async renewOnce(): Promise<void> {
    this.immediate.sweep()
    await this.leases.renewOnce()
  }

  /** Sends what is due until it finds nothing more that can be sent now, or until the time is over. */
  async sendDue(errand: Errand, chances: ProbeChances): Promise<void> {
    const mayGoOn = () => !errand.isOver()
    let wasOffered = false
    while (mayGoOn()) {
      while (mayGoOn() && (await this.fallback.run(mayGoOn, errand)));
      await this.fallback.lateOver()
      const { next } = chances
      // A probe that was offered and not taken found no event that could go.
      if (next === 'none' || (next === 'offered' && wasOffered)) return
      wasOffered = next === 'offered'
      if (next === 'coming') await awaitRing([this.probeDue], LONGEST_WAIT_MS)
    }
  }

  /** A call that sends begins to use the publisher, which connects with its first send. */
  beginCall(): object {
    const use = {}
    this.#calls.add(use)
    beginUse(this.#destination.publisher, use)
    return use
  }

  /** Never rejects. */
  async endCall(use: object): Promise<void> {
    // A send may outlast the call whose time was over.
    await Promise.all([this.fallback.idle(), this.#sender.idle()])
    this.#calls.delete(use)
    if (endUse(this.#destination.publisher, use)) await this.#disconnect()
  }

  start(): void {
    const { immediate, poller } = this.#parts.options
    if (beginUse(this.#destination.publisher, this, { keepOpen: true })) void this.#connect()
    if (immediate) this.gate.startTaking()
    if (poller) this.#pollLoop.start()
  }

  /** Accepts nothing more. Resolves when calls that send are over, and everything under way has an outcome. */
  async drain(callsOver: Promise<unknown>): Promise<void> {
    this.gate.stopTaking()
    this.#ended = [...this.#calls]
    await Promise.all([this.#pollLoop.stop(), this.immediate.idle(), callsOver])
    await Promise.all([this.fallback.idle(), this.#sender.idle()])
    await this.fallback.release()
  }

  /** Gives back events that have not been sent yet, without waiting for those under way. */
  async release(): Promise<void> {
    await Promise.all([this.immediate.release(), this.fallback.release()])
  }

  async close(): Promise<void> {
    this.circuits.stop()
    this.#sender.close()
    const { publisher } = this.#destination
    askToClose(publisher)
    if (endUse(publisher, this, ...this.#ended)) await this.#disconnect()
  }

  async #disconnect(): Promise<void> {
    try {
      await this.#destination.publisher.disconnect?.()
    } catch (thrown) {
      const error = toError(thrown)
      const { options, lifecycle } = this.#parts
      options.logger.warn({ err: error, publisher: this.name }, 'could not disconnect cleanly')
      lifecycle.tell('error', { step: 'disconnect', error })
    }
  }

  // An unreachable broker is no error here: events wait in the table, and the circuit reports failed sends.
  async #connect(): Promise<void> {
    try {
      await this.#destination.publisher.connect?.()
    } catch (error) {
      const fields = { err: error, publisher: this.name }
      this.#parts.options.logger.warn(fields, 'could not connect yet; events wait in the table')
    }
  }
}
