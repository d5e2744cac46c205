// The immediate path: from COMMIT straight to the send. Events wait in lanes. A batch combines lanes of several
// transactions, and a lane is never in two batches at once. Where order is by topic, so are batches: a topic whose sends
// hang delays no other. All of this is in memory: a crash loses nothing, because every event here is a leased row in the
// table. What cannot be sent now, or not in order (order.ts), goes back.
import { performance } from 'node:perf_hooks'
import type { OutboxEvent } from '../event/event.ts'
import type { ResolvedOptions } from '../options/options.ts'
import type { Publisher } from '../publishers/publisher.ts'
import type { Bell } from '../runtime/bell.ts'
import type { SavedEvent } from '../store/outbox/outbox-store.ts'
import type { BirthLease } from '../unit-of-work/hand-over.ts'
import { BATCH_CHARACTERS } from './claim-size.ts'
import type { Gate } from './gate.ts'
import type { LeasedEvent } from './leased-event.ts'
import type { Leases } from './leases.ts'
import type { OwnEvents } from './own-events.ts'
import { keepsOthersBack, SafeToFollow, splitInOrder } from './order.ts'
import type { Recorder } from './record.ts'
import type { Sender } from './send.ts'

/** Enough for throughput. */
const BATCH_EVENTS = 500

/** How many batches of a group are under way at once, and how many lanes each of them has. */
const TOGETHER = { batches: 4, lanes: Number.POSITIVE_INFINITY }
const PER_LANE = { batches: 64, lanes: 1 }

/** The events of one lane, in order. Exists while any of them waits or is in a batch. */
interface Lane {
  readonly group: Group
  readonly waiting: LeasedEvent[]
  sending: boolean
}

/** Lanes that may share a batch: those of one topic, or all. Exists while it has any. */
interface Group {
  readonly name: string
  /** The lanes that wait for a batch. */
  readonly ready: Map<number, Lane>
  /** How many batches are under way. */
  underWay: number
}

export interface ImmediateParts {
  readonly options: ResolvedOptions
  readonly publisher: Pick<Publisher, 'orderScope' | 'perLane'>
  readonly gate: Gate
  readonly leases: Leases
  readonly sender: Sender
  readonly recorder: Recorder
  /** Gets the events that leave this path without an outcome. */
  readonly own: OwnEvents
  /** Rung when events were left to the fallback. */
  readonly leftBehind: Bell
}

export class Immediate {
  readonly #parts: ImmediateParts
  readonly #shape: { readonly batches: number; readonly lanes: number }
  readonly #lanes = new Map<number, Lane>()
  readonly #groups = new Map<string, Group>()
  readonly #safeToFollow = new SafeToFollow()
  #sweptAt = performance.now()
  #pumping = false
  #onIdle: (() => void)[] = []

  constructor(parts: ImmediateParts) {
    this.#parts = parts
    this.#shape = parts.publisher.perLane ? PER_LANE : TOGETHER
  }

  /** Called after a confirmed COMMIT. Takes what it can send in order and gives the rest back. */
  accept(saved: readonly SavedEvent[], birth: BirthLease): void {
    const { left } = splitInOrder(
      saved,
      ({ event }) => event.lane,
      ({ event, follows }) => {
        const mayGo = this.#safeToFollow.letsFollow(follows) && this.#parts.gate.takes([event])
        if (mayGo) this.#queue(toLeased(event, birth))
        return mayGo
      },
    )
    if (left.length > 0) void this.#giveBack(left.map(({ event }) => toLeased(event, birth)))
    this.#schedulePump()
  }

  /** Gives back events that have not been sent. Those under way keep their lease, because their outcome is open. */
  async release(): Promise<void> {
    for (const group of this.#groups.values()) {
      group.ready.clear()
      this.#dropIfIdle(group)
    }
    await Promise.all([...this.#lanes].map(([key, lane]) => this.#abandon(key, lane)))
  }

  /** Resolves when nothing is queued or under way. */
  async idle(): Promise<void> {
    if (this.#groups.size === 0) return
    await new Promise<void>((resolve) => this.#onIdle.push(resolve))
  }

  /** Called regularly, to forget acks that no follower can name any more. */
  sweep(): void {
    const now = performance.now()
    if (now - this.#sweptAt < this.#parts.options.thresholdMs) return
    this.#sweptAt = now
    this.#safeToFollow.forgetOldAcks()
  }

  #queue(leased: LeasedEvent): void {
    const { lane: key, seq } = leased.event
    this.#parts.leases.take([leased])
    this.#safeToFollow.queue(seq)
    let lane = this.#lanes.get(key)
    if (!lane) {
      lane = { group: this.#groupOf(leased.event), waiting: [], sending: false }
      this.#lanes.set(key, lane)
    }
    lane.waiting.push(leased)
    if (!lane.sending) lane.group.ready.set(key, lane)
  }

  #groupOf({ topic }: OutboxEvent): Group {
    const name = this.#parts.publisher.orderScope === 'topic' ? topic : ''
    let group = this.#groups.get(name)
    if (!group) this.#groups.set(name, (group = { name, ready: new Map(), underWay: 0 }))
    return group
  }

  #dropIfIdle({ name, ready, underWay }: Group): void {
    if (ready.size > 0 || underWay > 0) return
    this.#groups.delete(name)
    if (this.#groups.size > 0) return
    for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  // Units of work that commit in the same turn of the event loop share a batch.
  #schedulePump(): void {
    if (this.#pumping || this.#groups.size === 0) return
    this.#pumping = true
    setImmediate(() => {
      this.#pumping = false
      for (const group of this.#groups.values()) {
        while (group.ready.size > 0 && group.underWay < this.#shape.batches) {
          void this.#sendBatch(group)
        }
      }
    })
  }

  async #sendBatch(group: Group): Promise<void> {
    const { sender, options, own } = this.#parts
    const { batch, lanes } = this.#takeBatch(group)
    group.underWay += 1
    const { over } = await sender.send(batch)
    group.underWay -= 1
    const broken = new Set<number>()
    for (const { event, outcome } of batch) {
      if (outcome!.kind === 'published') this.#safeToFollow.acknowledge(event.seq)
      else {
        this.#safeToFollow.remove(event.seq)
        if (outcome!.kind !== 'dead') own.note(event)
      }
      if (keepsOthersBack(outcome!.kind, options.deadLettersHold)) broken.add(event.lane)
    }
    for (const [key, lane] of lanes) {
      lane.sending = false
      if (broken.has(key)) void this.#abandon(key, lane)
      else if (lane.waiting.length > 0) group.ready.set(key, lane)
      else this.#lanes.delete(key)
    }
    void this.#dropWhen(over, batch, batch.filter(isLeftToFallback))
    this.#dropIfIdle(group)
    this.#schedulePump()
  }

  #takeBatch({ ready }: Group) {
    const batch: LeasedEvent[] = []
    const lanes: [number, Lane][] = []
    let room = BATCH_CHARACTERS
    for (const [key, lane] of ready) {
      if (room <= 0 || batch.length === BATCH_EVENTS || lanes.length === this.#shape.lanes) break
      const count = countFitting(lane.waiting, BATCH_EVENTS - batch.length, room)
      for (const leased of lane.waiting.splice(0, count)) {
        batch.push(leased)
        room -= leased.event.payload.length
      }
      lane.sending = true
      ready.delete(key)
      lanes.push([key, lane])
    }
    return { batch, lanes }
  }

  // The fallback continues where this lane stopped. Later events of the lane learn that when they are accepted.
  async #abandon(key: number, lane: Lane): Promise<void> {
    const waiting = lane.waiting.splice(0)
    if (!lane.sending) this.#lanes.delete(key)
    for (const { event } of waiting) this.#safeToFollow.remove(event.seq)
    await this.#giveBack(waiting)
  }

  async #giveBack(events: readonly LeasedEvent[]): Promise<void> {
    if (events.length === 0) return
    for (const { event } of events) this.#parts.own.note(event)
    this.#parts.leases.take(events)
    await this.#dropWhen(this.#parts.recorder.giveBack(events), events, events)
  }

  async #dropWhen(
    over: Promise<void>,
    events: readonly LeasedEvent[],
    left: readonly LeasedEvent[],
  ): Promise<void> {
    const { leases, gate, leftBehind } = this.#parts
    await over
    leases.drop(events)
    if (gate.reachesAny(left.map(({ event }) => event))) leftBehind.ring()
  }
}

function toLeased(event: OutboxEvent, birth: BirthLease): LeasedEvent {
  const { token, deadline, committedAt } = birth
  return { event, token, path: 'immediate', committedAt, deadline, outcome: null }
}

/**
 * Whether the fallback may send it once its row is free and its destination in reach. A circuit may have rung for a probe
 * before the record was written, when there was no row to probe with. What was refused rests.
 */
function isLeftToFallback({ outcome }: LeasedEvent): boolean {
  if (outcome?.kind === 'failed') return !outcome.counts
  return outcome?.kind === 'untried' || outcome?.kind === 'unknown'
}

/** At least one, so that a payload larger than the whole room goes alone. */
function countFitting(waiting: readonly LeasedEvent[], most: number, room: number): number {
  let left = room
  let count = 0
  while (count < Math.min(waiting.length, most) && left > 0) {
    left -= waiting[count]!.event.payload.length
    count += 1
  }
  return count
}
