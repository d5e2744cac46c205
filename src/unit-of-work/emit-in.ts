// emitIn(): saves events into a transaction that the application began itself. Its client does not report when it commits,
// and it may do so long after the save, so its rows are saved without a lease and belong to the fallback from COMMIT on. To be
// quicker than the next poll, we query the transaction's outcome from Postgres, at intervals that grow with its age. Once it
// has committed, we lease the rows and hand them over like those of a unit of work. A rollback leaves no rows to lease.
// Without start(), only flush() queries it.
import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { MAX_TIMER_MS } from '../checks/checks.ts'
import type { Executor } from '../drivers/driver.ts'
import { executorOf } from '../drivers/own-transaction.ts'
import { type EmitArguments, prepareEmitted } from '../event/emit.ts'
import { laneRefOf, type LaneRef, type PreparedEvent } from '../event/event.ts'
import { writePayloads } from '../event/stored-payload.ts'
import type { ResolvedOptions } from '../options/options.ts'
import type { NewLoop } from '../runtime/background.ts'
import type { Bell } from '../runtime/bell.ts'
import type { Loop } from '../runtime/loop.ts'
import type { SavedIn, Store } from '../store/outbox/outbox-store.ts'
import type { Backlog } from './backlog.ts'
import type { NextStep } from './hand-over.ts'
import { isDueAtOnce, levelOf } from './open-unit.ts'
import type { UnitsOfWork } from './unit-of-work.ts'

/** The pauses between two queries: as long as the youngest transaction has been open, within these limits. */
const SHORTEST_PAUSE_MS = 10
const LONGEST_PAUSE_MS = 250

/** How often in a row a query may fail before the fallback has to find the events without it. */
const MOST_FAILURES = 3

export interface EmitInParts {
  readonly store: Pick<Store<Executor>, 'saveIn' | 'endedTransactions' | 'lease'>
  readonly options: ResolvedOptions
  readonly units: UnitsOfWork
  readonly backlog: Backlog | null
  readonly delivery: NextStep
  readonly newLoop: NewLoop
  /** Rung when the fallback has to find the events by itself. */
  readonly bell: Bell
}

/** A transaction that was open when it was last seen. */
interface Watched {
  readonly events: PreparedEvent[]
  /** Events that this process does not send by itself, without their payloads. */
  readonly refs: LaneRef[]
  readonly since: number
  seenAt: number
  /** How many events it has that are not kept here. */
  cut: number
  /** When the first of its scheduled events is due. */
  dueAt: number
}

function newlyWatched(now: number): Watched {
  return { events: [], refs: [], since: now, seenAt: now, cut: 0, dueAt: Number.POSITIVE_INFINITY }
}

export class EmitIn {
  readonly #parts: EmitInParts
  readonly #token = randomUUID()
  readonly #watched = new Map<string, Watched>()
  readonly #loop: Loop
  #isOn = false
  #count = 0
  #failures = 0
  #untracked = 0
  #lastLook: Promise<unknown> = Promise.resolve()

  constructor(parts: EmitInParts) {
    this.#parts = parts
    this.#loop = parts.newLoop(
      'watch transactions',
      () => this.#pauseMs(),
      () => this.#look(),
    )
  }

  readonly emitIn = async (tx: unknown, ...given: EmitArguments): Promise<string | string[]> => {
    const { store, options, units, backlog } = this.#parts
    const level = levelOf(tx)
    if (level?.owner === units) return level.unit.emitAt(level, given)
    const emitted = prepareEmitted(given, options)
    const ids = emitted.map(({ id }) => id)
    // Not awaited: the count needs a connection, and the caller's transaction may hold the last one.
    void backlog?.refresh()
    const dueCount = emitted.filter(isDueAtOnce).length
    if (dueCount > 0) backlog?.check(() => dueCount)
    if (emitted.length > 0) {
      const write = options.payloads?.write
      const events = write ? await writePayloads(emitted, write, options.maxPayloadBytes) : emitted
      const saved = await store.saveIn(executorOf(tx), events, options.workerId)
      this.#watch(saved, events.filter(isDueAtOnce))
    }
    return Array.isArray(given[0]) ? ids : ids[0]!
  }

  start(): void {
    this.#isOn = true
    this.#loop.start({ atOnce: false })
  }

  /** Hands over what has committed. What is still open is left to the fallback of other instances. */
  async stop(): Promise<void> {
    this.#isOn = false
    await this.#loop.stop()
    await this.#look().catch(() => {})
    this.#forgetAll()
  }

  /** Hands over what has committed by now, for flush(). */
  async catchUp(): Promise<void> {
    await this.#look()
  }

  /** How many events are in transactions that have not ended, as far as is known. */
  get watchedCount(): number {
    return this.#count
  }

  /** How many events, since the last call, were not kept and may have been committed. */
  takeUntracked(): number {
    const count = this.#untracked
    this.#untracked = 0
    return count
  }

  // Rule 9: past maxInFlight, events are not kept, and the fallback is woken when their transaction has committed.
  #watch({ transaction, dueInMs }: SavedIn, events: readonly PreparedEvent[]): void {
    const { options, backlog, delivery } = this.#parts
    backlog?.saved(events.length)
    if (!delivery.sends) return
    // What is scheduled for later than the next poll needs no other look, and without start() there is no poll.
    const isSoon = this.#isOn && dueInMs !== null && dueInMs < options.pollIntervalMs
    if (events.length === 0 && !isSoon) return
    const isFull = this.#count + events.length > options.maxInFlight
    // Without start(), nothing would remove what is watched for its end alone.
    if (isFull && !this.#isOn) {
      this.#untracked += events.length
      return
    }
    const now = performance.now()
    const watched = this.#watched.get(transaction) ?? newlyWatched(now)
    this.#watched.set(transaction, watched)
    if (isSoon) watched.dueAt = Math.min(watched.dueAt, now + dueInMs)
    if (isFull) watched.cut += events.length
    else {
      this.#count += events.length
      if (this.#isOn) watched.events.push(...events)
      else watched.refs.push(...events.map(laneRefOf))
    }
    this.#loop.wakeWithin(SHORTEST_PAUSE_MS)
  }

  #pauseMs(): number {
    let youngest = Number.NEGATIVE_INFINITY
    for (const { since } of this.#watched.values()) youngest = Math.max(youngest, since)
    if (this.#watched.size === 0) return MAX_TIMER_MS
    const age = performance.now() - youngest
    return Math.min(Math.max(age, SHORTEST_PAUSE_MS), LONGEST_PAUSE_MS)
  }

  // One after the other: when a look ends, everything that had committed before it began is handed over.
  #look(): Promise<boolean> {
    const look = this.#lastLook.then(() => this.#lookNow())
    this.#lastLook = look.catch(() => {})
    return look
  }

  async #lookNow(): Promise<boolean> {
    if (this.#watched.size === 0) return false
    const askedAt = performance.now()
    try {
      const asked = [...this.#watched.keys()]
      const ended = await this.#parts.store.endedTransactions(asked)
      for (const one of asked) {
        const watched = this.#watched.get(one)
        if (watched && !ended.has(one)) watched.seenAt = askedAt
      }
      const committed: Watched[] = []
      for (const [one, isCommitted] of ended) {
        const watched = this.#watched.get(one)
        if (!watched) continue
        this.#watched.delete(one)
        this.#count -= watched.events.length + watched.refs.length
        if (isCommitted) committed.push(watched)
      }
      this.#failures = 0
      await this.#handOver(committed)
    } catch (error) {
      if (!this.#isOn) throw error
      this.#failures += 1
      if (this.#failures >= MOST_FAILURES) this.#forgetAll()
      // What has committed may not have been leased. The fallback finds the rows without the outcome.
      this.#parts.bell.ring()
      throw error
    }
    return false
  }

  // Leased after COMMIT, the events are where those of a unit of work are after theirs.
  async #handOver(committed: readonly Watched[]): Promise<void> {
    const { store, options, delivery, bell } = this.#parts
    for (const { refs, cut } of committed) {
      if (refs.length > 0) delivery.leave(refs)
      if (cut > 0) bell.ring()
      this.#untracked += cut
    }
    const dueAt = Math.min(...committed.map((one) => one.dueAt))
    if (dueAt < Number.POSITIVE_INFINITY) delivery.expect(Math.max(0, dueAt - performance.now()))
    const taken = committed.filter((one) => delivery.takesAny(one.events))
    for (const one of committed) if (!taken.includes(one)) delivery.leave(one.events)
    const events = taken.flatMap((one) => one.events)
    if (events.length === 0) return
    const { thresholdMs: ms, workerId } = options
    const token = this.#token
    const deadline = performance.now() + ms
    const saved = await store.lease(events, { token, workerId, ms }).catch((error: unknown) => {
      delivery.leave(events)
      throw error
    })
    const committedAt = Math.min(...taken.map(({ seenAt }) => seenAt))
    delivery.handOver(saved, { token, deadline, committedAt })
    // A claim may be about to take the others, or to leave them.
    const leased = new Set(saved.map(({ event }) => event.id))
    const missed = events.filter(({ id }) => !leased.has(id))
    if (missed.length > 0) delivery.leave(missed)
  }

  #forgetAll(): void {
    for (const { events, refs, cut } of this.#watched.values()) {
      this.#untracked += events.length + refs.length + cut
    }
    this.#watched.clear()
    this.#count = 0
  }
}
