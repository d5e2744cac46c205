// start / wake / stop around one run. The run itself is called directly by tests.
import { toError } from './errors.ts'

export interface LoopOptions {
  readonly intervalMs: number
  /** Answers whether there is more to do at once. */
  readonly run: () => Promise<boolean>
  /** A failed run ends its cycle; the next one comes after the interval. */
  readonly onError: (error: Error) => void
}

export class Loop {
  readonly #options: LoopOptions
  #cycle: Promise<void> | null = null
  #timer: NodeJS.Timeout | null = null
  #started = false
  #wakeAgain = false

  constructor(options: LoopOptions) {
    this.#options = options
  }

  start(): void {
    if (this.#started) return
    this.#started = true
    this.wake()
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
    } catch (error) {
      this.#options.onError(toError(error))
    }
  }

  #schedule(): void {
    if (!this.#started) return
    if (this.#wakeAgain) this.wake()
    else this.#timer = setTimeout(() => this.wake(), this.#options.intervalMs)
  }
}
