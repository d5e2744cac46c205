// start / wake / stop around one run. Tests call the run directly.
import { restMs } from './backoff.ts'
import { AsyncResource } from 'node:async_hooks'
import { performance } from 'node:perf_hooks'
import { toError } from '../errors.ts'
import { MAX_TIMER_MS } from '../checks/checks.ts'

/** The pauses of watch(): the first, doubled each time up to the longest. */
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 250

export interface LoopOptions {
  /** The pause between two runs. A function is called before each pause. */
  readonly intervalMs: number | (() => number)
  /** Returns whether there is more to do at once. A long run calls mayGoOn() to learn whether it may continue. */
  readonly run: (mayGoOn: () => boolean) => Promise<boolean>
  /** Called when a run fails, which ends its cycle. The next run follows after a rest that grows with each failure. */
  readonly onError: (error: Error) => void
  readonly onRecovered?: () => void
  /** How long watch() keeps looking after its last call. @default 10 seconds */
  readonly watchMs?: number
}

const WATCH_MS = 10_000

export class Loop {
  readonly #options: LoopOptions
  #cycle: Promise<void> | null = null
  #timer: NodeJS.Timeout | null = null
  /** When the timer ends. */
  #dueAt = 0
  // A wake-up may come from a request or a unit of work. What runs here belongs to neither.
  readonly #context = new AsyncResource('aftercommit')
  #started = false
  #wakeAgain = false
  #failures = 0
  #watchUntil = Number.NEGATIVE_INFINITY
  #pauseWhileWatching = FIRST_PAUSE_MS
  /** Whether look() was called since the current or last cycle began. */
  #isAsked = false
  /** When a cycle that look() had requested ended without finding work. */
  #foundNothingAt = Number.NEGATIVE_INFINITY

  constructor(options: LoopOptions) {
    this.#options = options
  }

  /** The first run starts at once, or after the first pause. */
  start({ atOnce = true } = {}): void {
    if (this.#started) return
    this.#started = true
    if (atOnce) this.wake()
    else this.#schedule()
  }

  /** Runs now; if a run is under way, once more after it. */
  wake(): void {
    if (!this.#started) return
    if (this.#cycle) {
      this.#wakeAgain = true
      return
    }
    if (this.#timer) clearTimeout(this.#timer)
    // Not in this turn: a run that wakes its own loop must find the cycle that it belongs to.
    const begin = async () => {
      await Promise.resolve()
      await this.#runCycle()
      this.#cycle = null
      this.#schedule()
    }
    this.#cycle = this.#context.runInAsyncScope(begin)
  }

  /** The next run begins in this time, unless it would anyway. Returns whether it begins sooner. A run that fails rests by itself. */
  wakeWithin(ms: number): boolean {
    if (!this.#started || this.#cycle || this.#failures > 0) return false
    const isSooner = performance.now() + ms < this.#dueAt
    if (isSooner) this.#wakeIn(ms)
    return isSooner
  }

  /**
   * For work that may be possible now. Runs now, unless the last such run found nothing less than 250 ms ago; then it
   * runs when they are over. So calls at any rate do not become a storm of runs.
   */
  look(): void {
    if (!this.#started) return
    this.#isAsked = true
    // A run that fails rests by itself. A run under way is followed by another one if it finds work.
    if (this.#cycle || this.#failures > 0) return
    const now = performance.now()
    const dueAt = this.#foundNothingAt + Math.min(LONGEST_PAUSE_MS, this.#intervalMs())
    if (dueAt <= now) this.wake()
    else if (dueAt < this.#dueAt) this.#wakeIn(dueAt - now)
  }

  /** look() for work that will be possible any moment, without a signal: looks again and again for a while. */
  watch(): void {
    const now = performance.now()
    if (now >= this.#watchUntil) this.#pauseWhileWatching = FIRST_PAUSE_MS
    this.#watchUntil = now + (this.#options.watchMs ?? WATCH_MS)
    this.look()
  }

  /** No run begins after this. Resolves when the current run has ended. */
  async stop(): Promise<void> {
    this.#started = false
    if (this.#timer) clearTimeout(this.#timer)
    await this.#cycle
  }

  async #runCycle(): Promise<void> {
    const isLook = this.#isAsked || performance.now() < this.#watchUntil
    let hasFound = false
    try {
      do {
        this.#wakeAgain = false
        this.#isAsked = false
        while (this.#started && (await this.#options.run(this.#mayGoOn))) {
          hasFound = true
          this.#pauseWhileWatching = FIRST_PAUSE_MS
        }
      } while (this.#started && (this.#wakeAgain || (this.#isAsked && hasFound)))
      if (this.#failures > 0) this.#options.onRecovered?.()
      this.#failures = 0
      if (isLook && !hasFound) this.#foundNothingAt = performance.now()
    } catch (error) {
      this.#failures += 1
      this.#options.onError(toError(error))
    }
  }

  readonly #mayGoOn = () => this.#started

  #schedule(): void {
    if (!this.#started) return
    if (this.#wakeAgain) return this.wake()
    this.#wakeIn(this.#pauseMs())
  }

  #wakeIn(pauseMs: number): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.#dueAt = performance.now() + pauseMs
    // A pause that is too long for one timer is split.
    const next = pauseMs > MAX_TIMER_MS ? () => this.#schedule() : () => this.wake()
    this.#timer = setTimeout(next, Math.min(pauseMs, MAX_TIMER_MS))
  }

  #pauseMs(): number {
    if (this.#failures > 0) return restMs(this.#failures)
    const intervalMs = this.#intervalMs()
    // Requested while the last run was under way and found nothing: it may have missed the reason for the request.
    const isWatching = this.#isAsked || performance.now() < this.#watchUntil
    if (!isWatching) return intervalMs
    const pauseMs = this.#pauseWhileWatching
    this.#pauseWhileWatching = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
    return Math.min(pauseMs, intervalMs)
  }

  #intervalMs(): number {
    const { intervalMs } = this.#options
    return typeof intervalMs === 'function' ? intervalMs() : intervalMs
  }
}
