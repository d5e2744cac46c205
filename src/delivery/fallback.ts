// The fallback: claims rows that no process holds any more and passes them to the same send as the immediate path.
// A crash after a claim costs only time: the rows can be claimed again when the lease ends.
import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { refOf } from '../event/event.ts'
import type { Lifecycle } from '../lifecycle.ts'
import type { ResolvedOptions } from '../options/options.ts'
import type { RoutedPublisher } from '../publishers/router.ts'
import { groupBy } from '../runtime/group-by.ts'
import type { Store } from '../store/outbox/outbox-store.ts'
import { ClaimSize } from './claim-size.ts'
import type { ClaimPlan, Gate } from './gate.ts'
import type { LeasedEvent } from './leased-event.ts'
import type { Leases } from './leases.ts'
import type { Recorder } from './record.ts'
import type { Sender } from './send.ts'

export interface Round {
  readonly claimed: number
  /** The claim took as many events as it could, so there is a backlog. */
  readonly isFull: boolean
  /** Another round may pay off at once: sent events may have freed others, or a smaller claim may succeed. */
  readonly mayBeMore: boolean
}

const NOTHING: Round = { claimed: 0, isFull: false, mayBeMore: false }

/** While there is a backlog, one round claims or records while another sends. */
const ROUNDS_AT_ONCE = 2

export interface FallbackParts {
  readonly store: Pick<Store<never>, 'claim'>
  readonly options: ResolvedOptions
  readonly destination: RoutedPublisher
  readonly lifecycle: Lifecycle
  readonly gate: Gate
  readonly leases: Leases
  readonly sender: Sender
  readonly recorder: Recorder
}

export class Fallback {
  readonly #parts: FallbackParts
  readonly #size: ClaimSize

  constructor(parts: FallbackParts) {
    this.#parts = parts
    this.#size = new ClaimSize(parts.options, parts.destination.publisher)
  }

  /** Runs rounds while there is a backlog. Returns whether there may be more to do at once. */
  async run(mayGoOn: () => boolean): Promise<boolean> {
    const { isFull, mayBeMore } = await this.runOnce()
    if (!isFull) return mayBeMore
    // Two rounds at once interfere no more than two instances do.
    const ending = new AbortController()
    const workers = Array.from({ length: ROUNDS_AT_ONCE }, async () => {
      try {
        while (mayGoOn() && !ending.signal.aborted && (await this.runOnce()).isFull);
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

  /** Runs one round: claims what it may, sends it and records the outcomes. */
  async runOnce(): Promise<Round> {
    const { destination, lifecycle } = this.#parts
    const plans = this.#plans()
    if (plans.length === 0) return NOTHING
    const startedAt = performance.now()
    // Side by side: a probe that takes long delays only the next round.
    const rounds = await Promise.allSettled(plans.map((plan) => this.#claimAndSend(plan)))
    const done = rounds.flatMap((round) => (round.status === 'fulfilled' ? [round.value] : []))
    const total = done.reduce(add, NOTHING)
    lifecycle.tell('poll:done', {
      publisher: destination.name,
      claimed: total.claimed,
      durationMs: Math.round(performance.now() - startedAt),
    })
    const failed = rounds.find((round) => round.status === 'rejected')
    if (failed) throw failed.reason
    return total
  }

  #plans(): ClaimPlan[] {
    // Once their lease has ended, rows with an unrecorded ack look abandoned, so nothing is claimed meanwhile.
    return this.#parts.recorder.isBehind ? [] : this.#parts.gate.claims(this.#size.next)
  }

  async #claimAndSend(plan: ClaimPlan): Promise<Round> {
    const { gate, leases, lifecycle, options, destination } = this.#parts
    const { isProbe, limit } = plan
    const batch = await this.#claim(plan).catch((error: unknown) => {
      if (!isProbe) this.#size.halve()
      throw error
    })
    if (batch.length === 0) {
      if (isProbe) gate.noProbeFor(plan.onlyTopics ?? [])
      else this.#size.reset()
      return NOTHING
    }
    if (!batch.some((leased) => leases.isFresh(leased))) {
      await this.#giveUp(batch)
      // Half as many may be in time. After a claim of one event, the next would be just as late.
      return { claimed: batch.length, isFull: false, mayBeMore: limit > 1 }
    }
    if (!isProbe) this.#size.learn(batch)
    lifecycle.tell('batch:claimed', { events: batch.map(({ event }) => refOf(event)) })
    await this.#send(batch)
    const ended = batch.filter(({ outcome }) => isEnd(outcome)).length
    const fields = { publisher: destination.name, claimed: batch.length, done: ended }
    options.logger.debug(fields, 'a round of the fallback is over')
    const isFull = !isProbe && batch.length === limit
    return { claimed: batch.length, isFull, mayBeMore: ended > 0 }
  }

  async #claim({ limit, onlyTopics, exceptTopics }: ClaimPlan): Promise<LeasedEvent[]> {
    const { store, options, leases } = this.#parts
    const { thresholdMs, workerId } = options
    // Each claim has its own token, which also fences off earlier work of this process on the row.
    const token = randomUUID()
    const deadline = performance.now() + thresholdMs
    const lease = { token, workerId, ms: thresholdMs }
    const events = await store.claim({ lease, limit, onlyTopics, exceptTopics })
    const batch = events.map((event): LeasedEvent => {
      return { event, token, path: 'fallback', committedAt: null, deadline, outcome: null }
    })
    leases.take(batch)
    return batch
  }

  /** Resolves when every known outcome is recorded. */
  async #send(batch: readonly LeasedEvent[]): Promise<void> {
    const { sender, leases, destination } = this.#parts
    const parts = destination.publisher.perLane
      ? [...groupBy(batch, ({ event }) => event.lane).values()]
      : [batch]
    await Promise.all(
      parts.map(async (part) => {
        const { recorded, over } = await sender.send(part)
        void over.then(() => leases.drop(part))
        await recorded
      }),
    )
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
