// start / wake / stop around one run. The run itself is called directly by tests.
import { restMs } from './backoff.ts'
import { toError } from './errors.ts'
import { MAX_TIMER_MS } from './validate.ts'

const FIRST_LOOK_MS = 50

export interface LoopOptions {
  /** The pause between two runs. A function is asked each time. */
  readonly intervalMs: number | (() => number)
  /** Answers whether there is more to do at once. */
  readonly run: () => Promise<boolean>
  /** A failed run ends its cycle; the next one comes after a rest that grows while it fails. */
  readonly onError: (error: Error) => void
  readonly onRecovered?: () => void
}

export class Loop {
  readonly #options: LoopOptions
  #cycle: Promise<void> | null = null
  #timer: NodeJS.Timeout | null = null
  #started = false
  #wakeAgain = false
  #failures = 0
  #nextLookMs: number | null = null

  constructor(options: LoopOptions) {
    this.#options = options
  }

  /** The first run comes at once, or after the first pause. */
  start({ atOnce = true } = {}): void {
    if (this.#started) return
    this.#started = true
    if (atOnce) this.wake()
    else this.#schedule()
  }

  /** For a run that takes long: whether it may go on. */
  get isStarted(): boolean {
    return this.#started
  }

  /** Runs now; if a run is under way, once more after it. */
  wake(): void {
    if (!this.#started) return
    if (this.#cycle) {
      this.#wakeAgain = true
      return
    }
    if (this.#timer) clearTimeout(this.#timer)
    // Not in this turn: a run that wakes its own loop has to find the cycle that it is part of.
    this.#cycle = Promise.resolve()
      .then(() => this.#runCycle())
      .finally(() => {
        this.#cycle = null
        this.#schedule()
      })
  }

  /**
   * For work that will be possible any moment, which nobody tells: runs now, and again after growing
   * pauses until they are as long as the interval.
   */
  watch(): void {
    this.#nextLookMs = FIRST_LOOK_MS
    this.wake()
  }

  /** No run begins after this; resolves when the one under way has ended. */
  async stop(): Promise<void> {
    this.#started = false
    if (this.#timer) clearTimeout(this.#timer)
    await this.#cycle
  }

  async #runCycle(): Promise<void> {
    try {
      do {
        this.#wakeAgain = false
        while (this.#started && (await this.#options.run()));
      } while (this.#started && this.#wakeAgain)
      if (this.#failures > 0) this.#options.onRecovered?.()
      this.#failures = 0
    } catch (error) {
      this.#failures += 1
      this.#options.onError(toError(error))
    }
  }

  #schedule(): void {
    if (!this.#started) return
    if (this.#wakeAgain) return this.wake()
    const pauseMs = this.#pauseMs()
    // What is too far away for one timer is looked at again then.
    const next = pauseMs > MAX_TIMER_MS ? () => this.#schedule() : () => this.wake()
    this.#timer = setTimeout(next, Math.min(pauseMs, MAX_TIMER_MS))
  }

  #pauseMs(): number {
    if (this.#failures > 0) return restMs(this.#failures)
    const { intervalMs: given } = this.#options
    const intervalMs = typeof given === 'function' ? given() : given
    const lookMs = this.#nextLookMs
    if (lookMs === null || lookMs >= intervalMs) {
      this.#nextLookMs = null
      return intervalMs
    }
    this.#nextLookMs = lookMs * 2
    return lookMs
  }
}
