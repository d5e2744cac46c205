// All pipelines of an outbox, one per publisher, and what concerns more than one of them: which events go where, and
// the order of an aggregate whose events go to two publishers. Such an event is sent at once only if all before it
// is out; else the fallback of its own pipeline sends it, as a claim sees the order across all of them.
import type { Unreachable } from './circuit.ts'
import { type EventRef, laneKey } from './events.ts'
import type { BirthLease } from './fast-path.ts'
import { groupBy } from './group-by.ts'
import type { LeasedEvent } from './leases.ts'
import { Pipeline, type PipelineParts } from './pipeline.ts'
import { splitInOrder } from './rules.ts'
import type { SavedEvent } from './store/store.ts'

export class Pipelines {
  readonly #all: readonly Pipeline[]
  readonly #byTopic = new Map<string, Pipeline>()
  /** Takes every topic that is not in the map; without one such events are refused at emit. */
  readonly #otherwise: Pipeline | undefined
  readonly #inOrder: boolean
  #draining: ReadonlySet<Pipeline> = new Set()

  constructor(parts: PipelineParts) {
    const { destinations, inOrder } = parts.options
    this.#all = destinations.map((destination) => new Pipeline(destination, parts))
    for (const pipeline of this.#all) {
      for (const topic of pipeline.topics.only ?? []) this.#byTopic.set(topic, pipeline)
    }
    this.#otherwise = this.#all.find(({ topics }) => topics.only === null)
    this.#inOrder = inOrder
    if (this.#all.length === 1 || !inOrder) return
    const gone = ({ event }: { event: EventRef }) => {
      for (const pipeline of this.#all) pipeline.gone(event)
    }
    parts.lifecycle.events.on('event:published', gone).on('event:dead', gone)
  }

  /** Whether the immediate path would take any of these now; what it does not take it gives back. */
  wants(events: readonly EventRef[]): boolean {
    return [...this.#divide(events)].some(([pipeline, own]) => pipeline.wants(own))
  }

  /** After COMMIT. `lease` is null when the events were born without one. */
  handOver(events: readonly SavedEvent[], lease: BirthLease | null): void {
    const parts = this.#divide(events)
    if (!lease) {
      for (const pipeline of parts.keys()) pipeline.wake()
      return
    }
    const behindOthers = parts.size > 1 ? this.#behindOthers(events) : undefined
    for (const [pipeline, own] of parts) pipeline.accept(own, lease, behindOthers)
    if (this.#all.length === 1) return
    // Units of work that do not lock their aggregate may commit in another order than they saved: the lane of
    // another pipeline may have got past an event before anybody knew that it would come.
    for (const [pipeline, own] of parts) {
      for (const other of this.#all) {
        if (other !== pipeline) for (const event of own) other.passOver(event)
      }
    }
  }

  wake(): void {
    for (const pipeline of this.#all) pipeline.wake()
  }

  /** One round of each fallback, side by side. Answers how many events they claimed. */
  async pollOnce(): Promise<number> {
    const rounds = await Promise.all(this.#all.map((pipeline) => pipeline.pollOnce()))
    return rounds.reduce((sum, { claimed }) => sum + claimed, 0)
  }

  unreachable(): Unreachable[] {
    return this.#all.flatMap((pipeline) => pipeline.unreachable())
  }

  /** Whose leases they are does not matter: no lease is held by two. */
  drop(leased: readonly LeasedEvent[]): void {
    for (const pipeline of this.#all) pipeline.drop(leased)
  }

  async renewOnce(): Promise<void> {
    await Promise.all(this.#all.map((pipeline) => pipeline.renewOnce()))
  }

  start(): void {
    for (const pipeline of this.#all) pipeline.start()
  }

  async drain(): Promise<void> {
    const draining = new Set(this.#all)
    this.#draining = draining
    const drain = async (pipeline: Pipeline) => {
      await pipeline.drain()
      draining.delete(pipeline)
    }
    await Promise.all(this.#all.map(drain))
  }

  async release(): Promise<void> {
    await Promise.all(this.#all.map((pipeline) => pipeline.release()))
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((pipeline) => pipeline.close()))
  }

  get descriptions() {
    return this.#all.map(({ description }) => description)
  }

  /** The names of those that drain() waits for. */
  get draining(): string[] {
    return [...this.#draining].map(({ name }) => name)
  }

  #of({ topic }: EventRef): Pipeline {
    return (this.#byTopic.get(topic) ?? this.#otherwise)!
  }

  #divide<Event extends EventRef>(events: readonly Event[]): Map<Pipeline, readonly Event[]> {
    if (this.#all.length === 1) return new Map([[this.#all[0]!, events]])
    return groupBy(events, (event) => this.#of(event))
  }

  // Events of one unit of work do not see each other in their INSERT, so that nothing is known of them here but
  // their order: of each aggregate only the run goes on that is for the pipeline of its first event.
  #behindOthers(events: readonly SavedEvent[]): ReadonlySet<string> {
    const keyOf = (event: EventRef) => laneKey(event, this.#inOrder)
    const firsts = new Map<string, Pipeline>()
    const { left } = splitInOrder(events, keyOf, (event) => {
      const first = firsts.get(keyOf(event)) ?? this.#of(event)
      firsts.set(keyOf(event), first)
      return first === this.#of(event)
    })
    return new Set(left.map(({ id }) => id))
  }
}
