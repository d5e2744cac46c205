// flush(): sends the committed events of this process that have no outcome, in rounds, until all have one or the time is
// over. It claims the lanes of these events alone, so order is kept and no other backlog is drained. The send and the
// record are those of the two paths. A crash or a frozen process costs the same as there: the leases end, and another
// instance goes on.
import { performance } from 'node:perf_hooks'
import { toError } from '../errors.ts'
import type { EventRef } from '../event/event.ts'
import type { Lifecycle } from '../lifecycle.ts'
import { awaitRing } from '../runtime/bell.ts'
import { groupBy } from '../runtime/group-by.ts'
import { raceTimeout } from '../runtime/race-timeout.ts'
import type { Standing, Store, StoreRules } from '../store/outbox/outbox-store.ts'
import type { OwnEvent, OwnEvents, OwnFailure } from './own-events.ts'
import type { Pauses } from './pauses.ts'
import type { Pipeline } from './pipeline.ts'
import { ProbeChances } from './probe-chances.ts'

/** The pauses between two looks at what other processes hold, doubled each time up to the longest. */
const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 250

/** The caller waits for the result, so the process must not end meanwhile. */
const KEEP_ALIVE = { keepAlive: true }

/**
 * Why an event was left:
 * - `sending`: this process or another one is sending it, and the outcome was not known in time.
 * - `behind`: it waits for an earlier event of its aggregate.
 * - `paused`: its topic is paused.
 * - `unreachable`: the broker or the topic is out of reach.
 * - `database`: the database failed.
 * - `disabled`: the outbox has `enabled: false`.
 * - `timeout`: it could have been sent, but the time was over.
 */
export type LeftReason =
  | 'sending'
  | 'behind'
  | 'paused'
  | 'unreachable'
  | 'database'
  | 'disabled'
  | 'timeout'

export interface FlushResult {
  /** Whether everything that this process committed is delivered. */
  readonly ok: boolean
  /** Delivered during the call, or found to be delivered by another instance. What was delivered before is not listed. */
  readonly delivered: readonly EventRef[]
  /** Refused by a handler or the broker: dead letters, and events that the outbox tries again later. */
  readonly failed: readonly ({ readonly event: EventRef } & OwnFailure)[]
  /** Without an outcome. They are in the table, and any instance sends them as soon as it can. */
  readonly left: readonly { readonly event: EventRef; readonly reason: LeftReason }[]
  /** How many more events were committed since the last flush than `maxInFlight` lets the outbox keep track of. */
  readonly untracked: number
}

export interface FlushParts {
  readonly store: Pick<Store<never>, 'standing'>
  readonly options: Pick<StoreRules, 'keepPublished'>
  readonly lifecycle: Lifecycle
  readonly own: OwnEvents
  readonly pauses: Pauses
  readonly pipelines: readonly Pipeline[]
  readonly pipelineOf: (topic: string) => Pipeline
}

export class Flush {
  readonly #parts: FlushParts
  readonly #events: readonly OwnEvent[]
  readonly #reasons = new Map<OwnEvent, LeftReason>()
  readonly #chances: ReadonlyMap<Pipeline, ProbeChances>

  constructor(parts: FlushParts) {
    const { own, pipelines } = parts
    this.#parts = parts
    for (const { leases } of pipelines) {
      for (const { event, path } of leases.held()) if (path === 'immediate') own.note(event)
    }
    this.#events = own.all()
    this.#chances = new Map(pipelines.map((one) => [one, new ProbeChances(one.circuits)]))
  }

  /** Never rejects. `until` is a time by performance.now(); the call may be over before that. */
  async run(until: number, isOver: () => boolean): Promise<void> {
    await raceTimeout(this.#work(until, isOver), until - performance.now(), KEEP_ALIVE)
  }

  /** `reason` is given if it is the same for all that is left. */
  result(reason?: LeftReason): FlushResult {
    const here = this.#heldHere()
    const delivered: EventRef[] = []
    const failed: FlushResult['failed'][number][] = []
    const left: FlushResult['left'][number][] = []
    for (const own of this.#events) {
      const { event, failure, isGone } = own
      if (isGone) continue
      if (failure === null) delivered.push(event)
      else if (failure) failed.push({ event, ...failure })
      else left.push({ event, reason: reason ?? this.#reasonOf(own, here) })
    }
    const untracked = this.#parts.own.takeUntracked()
    const ok = failed.length === 0 && left.length === 0 && untracked === 0
    return { ok, delivered, failed, left, untracked }
  }

  async #work(until: number, isOver: () => boolean): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS
    while (!isOver()) {
      const open = this.#events.filter(({ failure, isGone }) => failure === undefined && !isGone)
      if (open.length === 0) return
      try {
        const here = this.#heldHere()
        const free = open.filter(({ event }) => !here.has(event.id))
        if ((await this.#sendRound(free, isOver)) > 0) {
          pauseMs = FIRST_PAUSE_MS
          continue
        }
        const mayGoOn = free.length > 0 && (await this.#look(free))
        if (!mayGoOn && free.length === open.length) return
      } catch (thrown) {
        for (const own of open) this.#reasons.set(own, 'database')
        this.#parts.lifecycle.tell('error', { step: 'flush', error: toError(thrown) })
      }
      await this.#pause(Math.min(pauseMs, until - performance.now()))
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
    }
  }

  /** Claims, sends and records. Returns how many events it claimed. */
  async #sendRound(free: readonly OwnEvent[], isOver: () => boolean): Promise<number> {
    const { pipelineOf } = this.#parts
    const parts = groupBy(free, ({ event }) => pipelineOf(event.topic))
    const rounds = [...parts].map(([{ fallback }, own]) => {
      return fallback.runLanes([...new Set(own.map(({ lane }) => lane))], { isOver })
    })
    const settled = await Promise.allSettled(rounds)
    const failed = settled.find((one) => one.status === 'rejected')
    if (failed) throw failed.reason
    return settled.reduce((sum, one) => sum + (one as PromiseFulfilledResult<number>).value, 0)
  }

  /** After a round that could claim nothing: reads from the table why. Returns whether to wait for any of them. */
  async #look(free: readonly OwnEvent[]): Promise<boolean> {
    const { store, options, own: events } = this.#parts
    const standings = await store.standing(free.map(({ event }) => event.id))
    let mayGoOn = false
    for (const own of free) {
      const { id } = own.event
      const standing = standings.get(id)
      // Not in the table. If rows stay there when they are published, it was discarded, or saved in a savepoint that was rolled
      // back. Otherwise it was most likely published, by another instance, and deleted.
      if (!standing && options.keepPublished) events.gone(id)
      else if (!standing || standing.status === 'published') events.delivered(id)
      else if (standing.status === 'dead_letter' || standing.rests) {
        const { attempts, error, status } = standing
        events.failed(id, { attempts, error: error ?? '', isDead: status === 'dead_letter' })
      } else {
        const { reason, isWorthWaiting } = this.#judge(own.event, standing)
        this.#reasons.set(own, reason)
        mayGoOn ||= isWorthWaiting
      }
    }
    return mayGoOn
  }

  /** What keeps an unfinished event back, and whether that may change soon by itself. */
  #judge(event: EventRef, { isLeased, isHeld, ahead }: Standing): Judgement {
    if (isLeased) return { reason: 'sending', isWorthWaiting: true }
    const barred = this.#barred(event.topic)
    if (barred) return barred
    if (isHeld) return { reason: 'behind', isWorthWaiting: false }
    if (!ahead) return { reason: 'timeout', isWorthWaiting: true }
    if (ahead.isLeased) return { reason: 'behind', isWorthWaiting: true }
    const isWorthWaiting = !ahead.rests && (this.#barred(ahead.topic)?.isWorthWaiting ?? true)
    return { reason: 'behind', isWorthWaiting }
  }

  /** Whether a pause or a circuit keeps the topic's events back. */
  #barred(topic: string): Judgement | null {
    const { pauses, pipelineOf } = this.#parts
    if (pauses.isPaused(topic)) return { reason: 'paused', isWorthWaiting: false }
    const pipeline = pipelineOf(topic)
    if (pipeline.circuits.isPassable(topic)) return null
    return { reason: 'unreachable', isWorthWaiting: this.#chances.get(pipeline)!.has(topic) }
  }

  #reasonOf(own: OwnEvent, here: ReadonlySet<string>): LeftReason {
    if (here.has(own.event.id)) return 'sending'
    return this.#reasons.get(own) ?? this.#barred(own.event.topic)?.reason ?? 'timeout'
  }

  /** The ids of what this process holds. */
  #heldHere(): Set<string> {
    const ids = new Set<string>()
    for (const { leases } of this.#parts.pipelines) {
      for (const { event } of leases.held()) ids.add(event.id)
    }
    return ids
  }

  async #pause(ms: number): Promise<void> {
    const { own, pipelines } = this.#parts
    await awaitRing([own.changed, ...pipelines.map(({ probeDue }) => probeDue)], ms)
  }
}

interface Judgement {
  readonly reason: LeftReason
  readonly isWorthWaiting: boolean
}
