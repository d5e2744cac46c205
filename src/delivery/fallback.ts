// The fallback: claims rows that no process holds any more and passes them to the same send as the immediate path. A
// round first finds the topics that have due events, then claims from those in reach and from lanes that wait for an event
// under way. A crash after a claim costs only time: the rows can be claimed again when the lease ends.
import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { refOf } from '../event/event.ts'
import type { Lifecycle } from '../lifecycle.ts'
import type { ResolvedOptions } from '../options/options.ts'
import type { RoutedPublisher } from '../publishers/router.ts'
import type { Bell } from '../runtime/bell.ts'
import type { ClaimSource, Store, TopicLimits } from '../store/outbox/outbox-store.ts'
import { ClaimedSends } from './claimed-sends.ts'
import { ClaimSize } from './claim-size.ts'
import { RecentLook } from './recent-look.ts'
import type { ClaimPlan, Gate } from './gate.ts'
import type { LeasedEvent } from './leased-event.ts'
import type { Leases } from './leases.ts'
import type { Recorder } from './record.ts'
import type { Sender } from './send.ts'
import { WaitingLanes } from './waiting-lanes.ts'

export interface Round {
  readonly claimed: number
  /** The claim took as many events as it could, so there is a backlog. */
  readonly isFull: boolean
  /** Another round may pay off at once: sent events may have freed others, or a smaller claim may succeed. */
  readonly mayBeMore: boolean
}

interface Claim extends Pick<ClaimPlan, 'isProbe' | 'limit' | 'read'> {
  readonly from: ClaimSource
  /** The lanes that wait, if it looks at these. */
  readonly lanes: ReadonlyMap<number, number>
}

const NO_LANES: Claim['lanes'] = new Map()

interface Taken {
  readonly batch: readonly LeasedEvent[]
  readonly isFull: boolean
  readonly waitingLanes: readonly number[]
  readonly hasNewLanes: boolean
}

const NOTHING: Round = { claimed: 0, isFull: false, mayBeMore: false }

/** While there is a backlog, one round claims or records while another sends. */
const ROUNDS_AT_ONCE = 2

export interface FallbackParts {
  readonly store: Pick<Store<never>, 'claim' | 'dueTopics' | 'wake'>
  readonly options: ResolvedOptions
  readonly destination: RoutedPublisher
  readonly lifecycle: Lifecycle
  readonly gate: Gate
  readonly leases: Leases
  readonly sender: Sender
  readonly recorder: Recorder
  /** Rung when lanes wait for an event that is under way. */
  readonly waiting: Bell
}

export class Fallback {
  readonly #parts: FallbackParts
  readonly #size: ClaimSize
  readonly #look: RecentLook
  readonly #lanes = new WaitingLanes()
  readonly #sends: ClaimedSends

  constructor(parts: FallbackParts) {
    const { destination, waiting: freed } = parts
    this.#parts = parts
    this.#sends = new ClaimedSends({ ...parts, publisher: destination.publisher, freed })
    this.#look = new RecentLook(parts.store)
    this.#size = new ClaimSize(parts.options, parts.destination.publisher)
  }

  /** Runs rounds while there is a backlog. Returns whether there may be more to do at once. */
  async run(mayGoOn: () => boolean): Promise<boolean> {
    const { isFull, mayBeMore } = await this.runOnce(mayGoOn)
    if (!isFull) return mayBeMore
    // Two rounds at once interfere no more than two instances do.
    const ending = new AbortController()
    const workers = Array.from({ length: ROUNDS_AT_ONCE }, async () => {
      try {
        while (mayGoOn() && !ending.signal.aborted && (await this.runOnce(mayGoOn)).isFull);
      } catch (error) {
        // Ends the other worker too, so that the failure is reported now and not at the end of a long backlog.
        ending.abort()
        throw error
      }
    })
    const failed = (await Promise.allSettled(workers)).find(({ status }) => status === 'rejected')
    if (failed) throw (failed as PromiseRejectedResult).reason
    return true
  }

  /** Claims what it may, sends it and records the outcomes. Returns nothing claimed only if there is nothing to claim. */
  async runOnce(mayGoOn: () => boolean = () => true): Promise<Round> {
    for (;;) {
      const round = await this.#runRound()
      // It may have looked only at what it had to put off, or not at everything.
      if (round.claimed > 0 || !round.mayBeMore || !mayGoOn()) return round
    }
  }

  /** Resolves when no send of an earlier round is under way. */
  idle(): Promise<void> {
    return this.#sends.idle()
  }

  /** Hands lanes that wait over to other instances: they find the first event of each at once. */
  async release(): Promise<void> {
    const { store, options } = this.#parts
    const lanes = this.#lanes.takeAll()
    if (lanes.length === 0) return
    try {
      await store.wake(lanes)
    } catch (error) {
      const fields = { err: error, lanes: lanes.length }
      options.logger.debug(
        fields,
        'could not hand over events that wait for others; they go out later',
      )
    }
  }

  async #runRound(): Promise<Round> {
    const { destination, lifecycle } = this.#parts
    const plans = this.#plans()
    if (plans.length === 0) return NOTHING
    const startedAt = performance.now()
    let claimed = 0
    try {
      const { topics, isFresh } = await this.#look.find((topic) =>
        plans.some((plan) => !plan.isProbe && isWithin(topic, plan)),
      )
      const claims = this.#claims(plans, topics)
      const sends: Promise<Round>[] = []
      for (const claim of claims) {
        const taken = this.#claim(claim)
        const send = this.#send(claim, taken)
        // It is looked at below, which may be too late for Node.
        send.catch(() => {})
        sends.push(send)
        // One after the other, or two claims would compete for the rows of a lane.
        await Promise.allSettled([taken])
      }
      // Side by side: a probe that takes long delays only the next round.
      const rounds = await Promise.allSettled(sends)
      const done = rounds.flatMap((round) => (round.status === 'fulfilled' ? [round.value] : []))
      const total = done.reduce(add, NOTHING)
      claimed = total.claimed
      const failed = rounds.find((round) => round.status === 'rejected')
      if (failed) throw failed.reason
      return claimed === 0 && !isFresh ? { ...total, mayBeMore: true } : total
    } finally {
      const durationMs = Math.round(performance.now() - startedAt)
      lifecycle.tell('poll:done', { publisher: destination.name, claimed, durationMs })
    }
  }

  #plans(): ClaimPlan[] {
    // Once their lease has ended, rows with an unrecorded ack look abandoned, so nothing is claimed meanwhile.
    const { recorder, gate } = this.#parts
    return recorder.isBehind ? [] : gate.claims(this.#size.next, this.#sends.busyTopics)
  }

  /** What to claim: the lanes that wait, and of each plan what is due. */
  #claims(plans: readonly ClaimPlan[], dueTopics: readonly string[]): Claim[] {
    return plans.flatMap((plan): Claim[] => {
      const { isProbe, limit, read, onlyTopics, exceptTopics } = plan
      const topics = dueTopics.filter((topic) => isWithin(topic, plan))
      if (topics.length === 0) this.#foundNothing(isProbe, onlyTopics ?? [])
      const due =
        topics.length > 0 ? [{ isProbe, limit, read, from: { topics }, lanes: NO_LANES }] : []
      const lanes = isProbe ? NO_LANES : this.#lanes.take()
      if (lanes.size === 0) return due
      const from = { lanes: [...lanes.keys()], onlyTopics, exceptTopics }
      return [{ isProbe, limit, read, from, lanes }, ...due]
    })
  }

  #foundNothing(isProbe: boolean, topics: readonly string[]): void {
    if (isProbe) this.#parts.gate.noProbeFor(topics)
    else this.#size.reset()
  }

  async #send({ isProbe, limit, from }: Claim, taken: Promise<Taken>): Promise<Round> {
    const { leases, lifecycle, options, destination } = this.#parts
    const { batch, isFull, hasNewLanes, waitingLanes } = await taken.catch((error: unknown) => {
      if (!isProbe) {
        this.#size.halve()
        this.#look.learn(false)
      }
      throw error
    })
    if ('topics' in from) {
      if (!isProbe) this.#look.learn(isFull)
      if (batch.length === 0 && !isFull) this.#foundNothing(isProbe, from.topics)
    }
    if (batch.length === 0) {
      return { claimed: 0, isFull: isFull && !isProbe, mayBeMore: isFull || hasNewLanes }
    }
    if (!batch.some((leased) => leases.isFresh(leased))) {
      await this.#giveUp(batch)
      // Half as many may be in time. After a claim of one event, the next would be just as late.
      return { claimed: batch.length, isFull: false, mayBeMore: limit > 1 }
    }
    if (!isProbe) this.#size.learn(batch)
    lifecycle.tell('batch:claimed', { events: batch.map(({ event }) => refOf(event)) })
    await this.#sends.send(batch)
    // They have waited for as long as the send took. What waits behind an event that failed waits until that has rested. The
    // claim that retries that event returns the lane again.
    this.#lanes.add(waitingLanes)
    const failed = batch.filter(({ outcome }) => outcome?.kind === 'failed' && outcome.counts)
    this.#lanes.remove(failed.map(({ event }) => event.lane))
    const ended = batch.filter(({ outcome }) => isEnd(outcome)).length
    const fields = { publisher: destination.name, claimed: batch.length, done: ended }
    options.logger.debug(fields, 'a round of the fallback is over')
    return { claimed: batch.length, isFull: isFull && !isProbe, mayBeMore: ended > 0 }
  }

  async #claim({ limit, read, from, lanes }: Claim): Promise<Taken> {
    const { store, options, leases, waiting } = this.#parts
    const { thresholdMs, workerId } = options
    // Each claim has its own token, which also fences off earlier work of this process on the row.
    const token = randomUUID()
    const deadline = performance.now() + thresholdMs
    const lease = { token, workerId, ms: thresholdMs }
    const claimed = await store.claim({ lease, limit, read, from }).catch((error: unknown) => {
      this.#lanes.putBack(lanes)
      throw error
    })
    const { events, isFull, waitingLanes } = claimed
    const done = new Set(events.map(({ lane }) => lane))
    this.#lanes.putBack(new Map([...lanes].filter(([lane]) => !done.has(lane))))
    const batch = events.map((event): LeasedEvent => {
      return { event, token, path: 'fallback', committedAt: null, deadline, outcome: null }
    })
    leases.take(batch)
    const hasNewLanes = this.#lanes.add(waitingLanes)
    if (waitingLanes.length > 0) waiting.ring()
    return { batch, isFull, hasNewLanes, waitingLanes }
  }

  async #giveUp(batch: readonly LeasedEvent[]): Promise<void> {
    const { options, destination, recorder, leases } = this.#parts
    const { thresholdMs, logger } = options
    this.#size.halve()
    const next = this.#size.next
    logger.warn(
      { publisher: destination.name, claimed: batch.length, next, thresholdMs },
      'a claim took longer than half the threshold',
    )
    await recorder.giveBack(batch)
    leases.drop(batch)
  }
}

function isWithin(topic: string, { onlyTopics, exceptTopics }: TopicLimits): boolean {
  return !exceptTopics.includes(topic) && (onlyTopics?.includes(topic) ?? true)
}

function isEnd(outcome: LeasedEvent['outcome']): boolean {
  return outcome?.kind === 'published' || outcome?.kind === 'dead'
}

function add(one: Round, other: Round): Round {
  return {
    claimed: one.claimed + other.claimed,
    isFull: one.isFull || other.isFull,
    mayBeMore: one.mayBeMore || other.mayBeMore,
  }
}
