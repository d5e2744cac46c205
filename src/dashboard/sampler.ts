// The outbox over time, in the memory of this process: a look every five seconds, however many pages are open. It begins with
// the first request and ends an hour after the last one, so a dashboard that is not open costs the database nothing. A
// restart forgets the hour that it keeps.
import { performance } from 'node:perf_hooks'
import { raceTimeout } from '../runtime/race-timeout.ts'
import { isLocked } from '../store/database.ts'
import type { Pause } from '../store/outbox/control-store.ts'
import type { Sample } from './api.ts'
import { RateMeter } from './rates.ts'
import type { Look } from './source.ts'

export const SAMPLE_MS = 5_000
const KEPT_MS = 3_600_000
/** A look that takes longer than this is late. Until then, requests wait for it if the one before is old. */
const PATIENCE_MS = 2_000

export interface Seen extends Look {
  /** How long ago it was seen. */
  readonly agoMs: number
  /** For how long the database has not responded to the next look; 0 if it has. */
  readonly lateMs: number
  /** Whether a lock kept the next look from the table. */
  readonly isLocked: boolean
}

interface Taken {
  readonly look: Look
  readonly at: number
}

export class Sampler {
  readonly #look: () => Promise<Look>
  readonly #rates = new RateMeter()
  #samples: Sample[] = []
  #timer: NodeJS.Timeout | null = null
  #askedAt = 0
  #taken: Taken | null = null
  #underWay: { readonly begunAt: number; readonly done: Promise<void> } | null = null
  /** Of the last look, until one succeeds. */
  #failure: { readonly error: unknown } | null = null

  constructor(look: () => Promise<Look>) {
    this.#look = look
  }

  /** What was seen last, some seconds ago, or longer while a lock is held. Throws if the last look failed otherwise. */
  async seen(): Promise<Seen> {
    this.#askedAt = performance.now()
    if (!this.#timer) this.#begin()
    await this.#settle()
    const failure = this.#failure
    const taken = this.#taken
    if (failure && !(taken && isLocked(failure.error))) throw failure.error
    const { look, at } = taken!
    const now = performance.now()
    const lateMs = this.#underWay ? now - this.#underWay.begunAt : 0
    return {
      ...look,
      agoMs: now - at,
      lateMs: lateMs > PATIENCE_MS ? lateMs : 0,
      isLocked: failure !== null,
    }
  }

  /** The oldest first. `since`: the time of the last one that is known already. */
  samples(since: number | null): readonly Sample[] {
    return since === null ? this.#samples : this.#samples.filter(({ at }) => at > since)
  }

  /** What a person has just paused or resumed shows at once. */
  learn(pauses: readonly Pause[]): void {
    if (this.#taken) this.#taken = { ...this.#taken, look: { ...this.#taken.look, pauses } }
  }

  /** Ends the looks, until the next request. */
  stop(): void {
    if (this.#timer) clearInterval(this.#timer)
    this.#timer = null
  }

  #begin(): void {
    this.#timer = setInterval(() => this.#tick(), SAMPLE_MS).unref()
    // A look from before a pause of the sampler is too old.
    this.#taken = null
    this.#failure = null
    this.#take()
  }

  #tick(): void {
    if (performance.now() - this.#askedAt >= KEPT_MS) this.stop()
    else this.#take()
  }

  // While one look is late, no other one begins.
  #take(): void {
    if (this.#underWay) return
    const begunAt = performance.now()
    const done = this.#look()
      .then(
        (look) => this.#keep(look),
        (error: unknown) => {
          this.#failure = { error }
        },
      )
      .finally(() => {
        this.#underWay = null
      })
    this.#underWay = { begunAt, done }
  }

  #keep(look: Look): void {
    const { stats, instances, clockMs } = look
    this.#taken = { look, at: performance.now() }
    this.#failure = null
    const sample: Sample = {
      at: Math.round(clockMs),
      pending: stats.pending.count,
      dead: stats.dead.count,
      oldestMs: stats.lagMs ?? 0,
      ...this.#rates.read(instances),
    }
    this.#samples = [...this.#samples.filter(({ at }) => at > clockMs - KEPT_MS), sample]
  }

  /** Waits until there is something to show. */
  async #settle(): Promise<void> {
    const underWay = this.#underWay
    if (!underWay) return
    const taken = this.#taken
    const now = performance.now()
    if (!taken) await underWay.done
    else if (now - taken.at > SAMPLE_MS + PATIENCE_MS) {
      await raceTimeout(underWay.done, underWay.begunAt + PATIENCE_MS - now)
    }
  }
}
