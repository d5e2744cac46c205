// The immediate path: from COMMIT straight to delivery. Events wait in a lane per aggregate, lanes are
// gathered into batches across transactions, and one lane is never in two batches at once.
// All of it is memory: a crash loses nothing, as every event here is a leased row in the table. What
// cannot be sent now, or not in order, is given back to the fallback.
import { performance } from 'node:perf_hooks'
import type { Circuits } from './circuit.ts'
import type { NextStep } from './delivery.ts'
import { type EventRef, laneKey, type OutboxEvent } from './events.ts'
import type { LeasedEvent, Leases } from './leases.ts'
import type { ResolvedOptions } from './options.ts'
import { BATCH_CHARACTERS, mayFollow, splitInOrder } from './rules.ts'
import type { SavedEvent } from './store/store.ts'

/** Enough for throughput. */
const BATCH_EVENTS = 500

/** How many batches, of how many lanes each, are under way at once. */
const TOGETHER = { batches: 4, lanes: Number.POSITIVE_INFINITY }
const PER_AGGREGATE = { batches: 64, lanes: 1 }

const NONE: ReadonlySet<string> = new Set()

/** The lease that a unit of work wrote on its events. */
export interface BirthLease {
  readonly token: string
  readonly deadline: number
  readonly committedAt: number
}

interface Lane {
  readonly key: string
  waiting: LeasedEvent[]
  sending: boolean
  /** Every unpublished event up to this seq went, or goes, through this lane. */
  coveredSeq: number
  idleSince: number
}

export class FastPath {
  readonly #options: ResolvedOptions
  readonly #circuits: Circuits
  readonly #leases: Leases
  readonly #next: NextStep
  readonly #shape: { readonly batches: number; readonly lanes: number }
  readonly #lanes = new Map<string, Lane>()
  readonly #ready = new Set<Lane>()
  #underWay = 0
  #pumping = false
  #open = false
  #onIdle: (() => void)[] = []

  constructor(
    options: ResolvedOptions,
    circuits: Circuits,
    leases: Leases,
    perAggregate: boolean,
    next: NextStep,
  ) {
    this.#options = options
    this.#circuits = circuits
    this.#leases = leases
    this.#next = next
    this.#shape = perAggregate ? PER_AGGREGATE : TOGETHER
  }

  open(): void {
    this.#open = this.#options.immediate
  }

  /** From here on new events are the fallback's; what was accepted still goes out. */
  close(): void {
    this.#open = false
  }

  /** Asked before the save: would these be sent at once? If not, they are born without a lease. */
  wants(events: readonly EventRef[]): boolean {
    const fits = this.#leases.size + events.length <= this.#options.maxInFlight
    return this.#open && fits && events.every(({ topic }) => this.#circuits.accepts(topic))
  }

  /**
   * Called after COMMIT. Takes what it can send, in order, and gives the rest back: among them `behindOthers`,
   * the ids of those that come after an event of another pipeline in the same unit of work.
   */
  accept(
    events: readonly SavedEvent[],
    lease: BirthLease,
    behindOthers: ReadonlySet<string> = NONE,
  ): void {
    const { inOrder } = this.#options
    const saved = events.map(({ after, ...event }) => ({ after, leased: { event, ...lease } }))
    const { left } = splitInOrder(
      saved,
      ({ leased }) => laneKey(leased.event, inOrder),
      ({ after, leased }) => {
        const key = laneKey(leased.event, inOrder)
        const lane = this.#lanes.get(key) ?? newLane(key)
        const isTaken =
          mayFollow(after, lane.coveredSeq) &&
          this.wants([leased.event]) &&
          !behindOthers.has(leased.event.id)
        if (isTaken) this.#queue(leased, lane)
        else this.passOver(leased.event)
        return isTaken
      },
    )
    if (left.length > 0) void this.#next.giveBack(left.map(({ leased }) => leased))
    this.#schedulePump()
  }

  /** An event that does not go through its lane here: what comes after it may not take the lane past it. */
  passOver(event: OutboxEvent): void {
    const lane = this.#lanes.get(laneKey(event, this.#options.inOrder))
    if (lane) lane.coveredSeq = Math.min(lane.coveredSeq, event.seq - 1)
  }

  /** Gives back what has not been sent yet. What is under way keeps its lease: its outcome is open. */
  async release(): Promise<void> {
    this.#ready.clear()
    await Promise.all([...this.#lanes.values()].map((lane) => this.#abandon(lane)))
  }

  /** Resolves when nothing is queued or under way. */
  async idle(): Promise<void> {
    if (this.#ready.size === 0 && this.#underWay === 0) return
    await new Promise<void>((resolve) => this.#onIdle.push(resolve))
  }

  // A lane is kept a while after its last event: an INSERT that ran just before that event's record was
  // written still names it as its predecessor, and only the lane knows that it has gone out.
  sweep(): void {
    const before = performance.now() - this.#options.thresholdMs
    for (const [key, lane] of this.#lanes) {
      const idle = !lane.sending && lane.waiting.length === 0
      if (idle && lane.idleSince < before) this.#lanes.delete(key)
    }
  }

  #queue(leased: LeasedEvent, lane: Lane): void {
    this.#leases.hold([leased])
    lane.waiting.push(leased)
    lane.coveredSeq = Math.max(lane.coveredSeq, leased.event.seq)
    this.#lanes.set(lane.key, lane)
    if (!lane.sending) this.#ready.add(lane)
  }

  // Units of work that commit in the same turn of the event loop share a batch.
  #schedulePump(): void {
    if (this.#pumping) return
    this.#pumping = true
    setImmediate(() => {
      this.#pumping = false
      while (this.#ready.size > 0 && this.#underWay < this.#shape.batches) void this.#sendBatch()
    })
  }

  async #sendBatch(): Promise<void> {
    const { batch, lanes } = this.#takeBatch()
    this.#underWay += 1
    const { unsent } = await this.#next.deliver(batch)
    this.#underWay -= 1
    for (const [lane, events] of lanes) {
      lane.sending = false
      lane.idleSince = performance.now()
      if (events.some((event) => unsent.has(event))) void this.#abandon(lane)
      else if (lane.waiting.length > 0) this.#ready.add(lane)
      else if (!this.#options.inOrder) this.#lanes.delete(lane.key)
    }
    if (this.#ready.size > 0) this.#schedulePump()
    else if (this.#underWay === 0) for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  #takeBatch() {
    const batch: LeasedEvent[] = []
    const lanes: [Lane, LeasedEvent[]][] = []
    let room = BATCH_CHARACTERS
    for (const lane of this.#ready) {
      const taken: LeasedEvent[] = []
      while (lane.waiting.length > 0 && room > 0 && batch.length < BATCH_EVENTS) {
        const next = lane.waiting.shift()!
        taken.push(next)
        batch.push(next)
        room -= next.event.payload.length
      }
      if (taken.length === 0) break
      lane.sending = true
      this.#ready.delete(lane)
      lanes.push([lane, taken])
      if (lanes.length === this.#shape.lanes) break
    }
    return { batch, lanes }
  }

  // The fallback takes over where this lane stopped; later events find that out from their INSERT.
  async #abandon(lane: Lane): Promise<void> {
    const waiting = lane.waiting.splice(0)
    lane.coveredSeq = -1
    if (waiting.length > 0) await this.#next.giveBack(waiting)
  }
}

function newLane(key: string): Lane {
  return { key, waiting: [], sending: false, coveredSeq: -1, idleSince: performance.now() }
}
