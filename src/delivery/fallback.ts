// The fallback: claims rows that no process holds any more and passes them to the same send as the immediate path. A
// round first finds the topics that have due events, then claims from those in reach and from lanes that wait for an event
// under way. A crash after a claim costs only time: the rows can be claimed again when the lease ends.
// Longer than other files: a round plans, claims, sends and learns from the result, and is read from top to bottom. What can
// stand alone is apart already: sizes of claims, looks, lanes that wait, sends.
import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { refOf } from '../event/event.ts'
import type { Lifecycle } from '../lifecycle.ts'
import type { ResolvedOptions } from '../options/options.ts'
import type { RoutedPublisher } from '../publishers/router.ts'
import type { Bell } from '../runtime/bell.ts'
import type { ClaimSource, Store, TopicLimits } from '../store/outbox/outbox-store.ts'
import { ClaimedSends, ROUNDS_AT_ONCE } from './claimed-sends.ts'
import { ClaimSize } from './claim-size.ts'
import { RecentLook } from './recent-look.ts'
import type { ClaimPlan, Gate } from './gate.ts'
import type { LeasedEvent } from './leased-event.ts'
import type { Leases } from './leases.ts'
import type { Recorder } from './record.ts'
import type { Sender } from './send.ts'
import type { Tally } from './tally.ts'
import type { Upcoming } from './upcoming.ts'
import { WaitingLanes } from './waiting-lanes.ts'

export interface Round {
  readonly claimed: number
  /** The claim took as many events as it could, so there is a backlog. */
  readonly isFull: boolean
  /** Another round may pay off at once: sent events may have freed others, or a smaller claim may succeed. */
  readonly mayBeMore: boolean
}

/** A call that sends for a limited time, such as drain(). */
export interface Errand {
  /** Whether the time is over: nothing more is claimed, and what was just claimed is given back. */
  readonly isOver: () => boolean
  readonly tally?: Tally
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
  readonly upcoming: Upcoming
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
    const onOver = (part: readonly LeasedEvent[]) => this.#leaveFailed(part)
    this.#sends = new ClaimedSends({ ...parts, publisher: destination.publisher, freed, onOver })
    this.#look = new RecentLook(() => this.#dueTopics())
    this.#size = new ClaimSize(parts.options, parts.destination.publisher)
  }

  /** Runs rounds while there is a backlog. Returns whether there may be more to do at once. */
  async run(mayGoOn: () => boolean, errand?: Errand): Promise<boolean> {
    const { isFull, mayBeMore } = await this.runOnce(mayGoOn, errand)
    if (!isFull) return mayBeMore
    // Rounds at once interfere no more than as many instances do.
    const ending = new AbortController()
    const workers = Array.from({ length: ROUNDS_AT_ONCE }, async () => {
      try {
        while (mayGoOn() && !ending.signal.aborted && (await this.runOnce(mayGoOn, errand)).isFull);
      } catch (error) {
        // Ends the other workers too, so that the failure is reported now and not at the end of a long backlog.
        ending.abort()
        throw error
      }
    })
    const failed = (await Promise.allSettled(workers)).find(({ status }) => status === 'rejected')
    if (failed) throw (failed as PromiseRejectedResult).reason
    return true
  }

  /** Claims what it may, sends it and records the outcomes. Returns nothing claimed only if there is nothing to claim. */
  async runOnce(mayGoOn: () => boolean = () => true, errand?: Errand): Promise<Round> {
    for (;;) {
      const round = await this.#runRound(errand)
      // It may have looked only at what it had to put off, or not at everything.
      if (round.claimed > 0 || !round.mayBeMore || !mayGoOn()) return round
    }
  }

  /** One round over the events at the heads of these lanes, and over no others. Returns how many it claimed. */
  async runLanes(lanes: readonly number[], errand: Errand): Promise<number> {
    const claims = this.#plans().map(
      ({ isProbe, limit, read, onlyTopics, exceptTopics }): Claim => {
        return { isProbe, limit, read, from: { lanes, onlyTopics, exceptTopics }, lanes: NO_LANES }
      },
    )
    const { total, failed } = await this.#runClaims(claims, errand)
    if (failed) throw failed.reason
    return total.claimed
  }

  /** Resolves when no send that a round did not wait for is under way. */
  lateOver(): Promise<void> {
    return this.#sends.lateOver()
  }

  /** Resolves when no send is under way. */
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

  async #runRound(errand?: Errand): Promise<Round> {
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
      const { total, failed } = await this.#runClaims(claims, errand)
      claimed = total.claimed
      if (failed) throw failed.reason
      return claimed === 0 && !isFresh ? { ...total, mayBeMore: true } : total
    } finally {
      const durationMs = Math.round(performance.now() - startedAt)
      lifecycle.tell('poll:done', { publisher: destination.name, claimed, durationMs })
    }
  }

  async #runClaims(claims: readonly Claim[], errand?: Errand) {
    const sends: Promise<Round>[] = []
    for (const claim of claims) {
      const taken = this.#claim(claim)
      const send = this.#send(claim, taken, errand)
      // It is looked at below, which may be too late for Node.
      send.catch(() => {})
      sends.push(send)
      // One after the other, or two claims would compete for the rows of a lane.
      await Promise.allSettled([taken])
    }
    // Side by side: a probe that takes long delays only the next round.
    const rounds = await Promise.allSettled(sends)
    const done = rounds.flatMap((round) => (round.status === 'fulfilled' ? [round.value] : []))
    const failed = rounds.find((round) => round.status === 'rejected')
    return { total: done.reduce(add, NOTHING), failed }
  }

  async #dueTopics(): Promise<readonly string[]> {
    const { store, upcoming } = this.#parts
    const { topics, nextInMs } = await store.dueTopics()
    if (nextInMs !== null) upcoming.expect(nextInMs)
    return topics
  }

  #plans(): ClaimPlan[] {
    // Once their lease has ended, rows with an unrecorded ack look abandoned, so nothing is claimed meanwhile.
    const { recorder, gate } = this.#parts
    return recorder.isBehind ? [] : gate.claims(this.#size.next, this.#sends.busyTopics)
  }

  /** What to claim: the lanes that wait, and of each plan what is due. */
  #claims(plans: readonly ClaimPlan[], dueTopics: readonly string[]): Claim[] {
    const isBusy = this.#sends.busyTopics.some((topic) => dueTopics.includes(topic))
    return plans.flatMap((plan): Claim[] => {
      const { isProbe, limit, read, onlyTopics, exceptTopics } = plan
      const topics = dueTopics.filter((topic) => isWithin(topic, plan))
      // A topic that is only busy still has its backlog, and claims of it keep their size.
      if (topics.length === 0 && (isProbe || !isBusy)) this.#foundNothing(isProbe, onlyTopics ?? [])
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

  async #send(
    { isProbe, limit, from }: Claim,
    taken: Promise<Taken>,
    errand?: Errand,
  ): Promise<Round> {
    const { leases, recorder, lifecycle, options, destination } = this.#parts
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
    if (errand?.isOver()) {
      // The process may be frozen any moment. What another instance can have at once must not wait for the end of a lease.
      await recorder.giveBack(batch)
      leases.drop(batch)
      return { claimed: batch.length, isFull: false, mayBeMore: false }
    }
    if (!batch.some((leased) => leases.isFresh(leased))) {
      await this.#giveUp(batch)
      // Half as many may be in time. After a claim of one event, the next would be just as late.
      return { claimed: batch.length, isFull: false, mayBeMore: limit > 1 }
    }
    if (!isProbe) this.#size.learn(batch)
    lifecycle.tell('batch:claimed', { events: batch.map(({ event }) => refOf(event)) })
    await this.#sends.send(batch, errand?.tally)
    // They have waited for as long as the send took.
    this.#lanes.add(waitingLanes)
    this.#leaveFailed(batch)
    const ended = batch.filter(({ outcome }) => isEnd(outcome)).length
    const fields = { publisher: destination.name, claimed: batch.length, done: ended }
    options.logger.debug(fields, 'a round of the fallback is over')
    return { claimed: batch.length, isFull: isFull && !isProbe, mayBeMore: ended > 0 }
  }

  /**
   * What waits behind an event that failed waits until that has rested. The claim that retries that event returns the lane
   * again.
   */
  #leaveFailed(batch: readonly LeasedEvent[]): void {
    const failed = batch.filter(({ outcome }) => outcome?.kind === 'failed' && outcome.counts)
    this.#lanes.remove(failed.map(({ event }) => event.lane))
  }

  async #claim({ limit, read, from, lanes }: Claim): Promise<Taken> {
    const { store, options, leases, waiting, lifecycle, destination } = this.#parts
    const { thresholdMs, workerId } = options
    // Each claim has its own token, which also fences off earlier work of this process on the row.
    const token = randomUUID()
    const deadline = performance.now() + thresholdMs
    const lease = { token, workerId, ms: thresholdMs }
    const step = { step: 'claim', publisher: destination.name } as const
    const claiming = lifecycle.timed(step, () => store.claim({ lease, limit, read, from }))
    const claimed = await claiming.catch((error: unknown) => {
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
