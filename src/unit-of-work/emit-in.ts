// emitIn(): saves events into a transaction that the application began itself. Its client does not report when it commits,
// and it may do so long after the save, so its rows are saved without a lease and belong to the fallback from COMMIT on. To be
// quicker than the next poll, we ask Postgres what became of the transaction, at pauses that grow with its age. Once it
// has committed, we lease the rows and hand them over like those of a unit of work. A rollback leaves no rows to lease.
import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { MAX_TIMER_MS } from '../checks/checks.ts'
import type { Executor } from '../drivers/driver.ts'
import { executorOf } from '../drivers/own-transaction.ts'
import { type EmitArguments, prepareEmitted } from '../event/emit.ts'
import type { PreparedEvent } from '../event/event.ts'
import type { ResolvedOptions } from '../options/options.ts'
import type { NewLoop } from '../runtime/background.ts'
import type { Bell } from '../runtime/bell.ts'
import type { Loop } from '../runtime/loop.ts'
import type { Store } from '../store/outbox/outbox-store.ts'
import type { Backlog } from './backlog.ts'
import type { NextStep } from './hand-over.ts'
import { levelOf } from './open-unit.ts'
import type { UnitsOfWork } from './unit-of-work.ts'

/** The pauses between two questions: as long as the youngest transaction has been open, within these limits. */
const SHORTEST_PAUSE_MS = 10
const LONGEST_PAUSE_MS = 250

/** How often in a row a question may fail before the fallback has to do without it. */
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
  readonly since: number
  seenAt: number
  /** Whether it has events that are not kept here. */
  isCut: boolean
}

function newlyWatched(now: number): Watched {
  return { events: [], since: now, seenAt: now, isCut: false }
}

export class EmitIn {
  readonly #parts: EmitInParts
  readonly #token = randomUUID()
  readonly #watched = new Map<string, Watched>()
  readonly #loop: Loop
  #isOn = false
  #count = 0
  #failures = 0

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
    const events = prepareEmitted(given, options)
    const ids = events.map(({ id }) => id)
    // Not awaited: the count needs a connection, and the caller's transaction may hold the last one.
    void backlog?.refresh()
    backlog?.check(() => events.length)
    if (events.length > 0) {
      const transaction = await store.saveIn(executorOf(tx), events, options.workerId)
      this.#watch(transaction, events)
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

  // Rule 9: past maxInFlight, events are not kept, and the fallback is woken when their transaction has committed.
  #watch(transaction: string, events: readonly PreparedEvent[]): void {
    const { options, backlog } = this.#parts
    backlog?.saved(events.length)
    if (!this.#isOn) return
    const now = performance.now()
    const watched = this.#watched.get(transaction) ?? newlyWatched(now)
    this.#watched.set(transaction, watched)
    if (this.#count + events.length > options.maxInFlight) watched.isCut = true
    else {
      this.#count += events.length
      watched.events.push(...events)
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

  async #look(): Promise<boolean> {
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
        this.#count -= watched.events.length
        if (isCommitted) committed.push(watched)
      }
      this.#failures = 0
      await this.#handOver(committed)
    } catch (error) {
      this.#failures += 1
      if (this.#failures >= MOST_FAILURES) this.#forgetAll()
      // What has committed may not have been leased. The fallback needs no answer to find the rows.
      this.#parts.bell.ring()
      throw error
    }
    return false
  }

  // Leased after COMMIT, the events are where those of a unit of work are after theirs.
  async #handOver(committed: readonly Watched[]): Promise<void> {
    const { store, options, delivery, bell } = this.#parts
    if (committed.some(({ isCut }) => isCut)) bell.ring()
    const taken = committed.filter((one) => delivery.takesAny(one.events))
    for (const one of committed) if (!taken.includes(one)) delivery.leave(one.events)
    const events = taken.flatMap((one) => one.events)
    if (events.length === 0) return
    const { thresholdMs: ms, workerId } = options
    const token = this.#token
    const deadline = performance.now() + ms
    const saved = await store.lease(events, { token, workerId, ms })
    const committedAt = Math.min(...taken.map(({ seenAt }) => seenAt))
    delivery.handOver(saved, { token, deadline, committedAt })
    // A claim may be about to take the others, or to leave them.
    const leased = new Set(saved.map(({ event }) => event.id))
    const missed = events.filter(({ id }) => !leased.has(id))
    if (missed.length > 0) delivery.leave(missed)
  }

  #forgetAll(): void {
    this.#watched.clear()
    this.#count = 0
  }
}
