// Logs lasting trouble when it begins, once a minute while it goes on, and when it is over, so that an outage does not
// fill the log.
import { performance } from 'node:perf_hooks'
import type { Logger } from './logger.ts'

const REMINDER_MS = 60_000

export interface TroubleTexts {
  readonly level: 'warn' | 'error'
  readonly begins: string
  readonly goesOn: string
  readonly over: string
}

/** What a loop logs about a failing run. */
export const BACKGROUND_STEP: TroubleTexts = {
  level: 'error',
  begins: 'a background step failed; it will be tried again',
  goesOn: 'a background step is still failing',
  over: 'a background step works again',
}

export class Trouble {
  readonly #logger: Logger
  readonly #texts: TroubleTexts
  #since: number | null = null
  #toldAt = 0

  constructor(logger: Logger, texts: TroubleTexts) {
    this.#logger = logger
    this.#texts = texts
  }

  /** Reports the trouble, for the first time or again. */
  happened(fields: object): void {
    const now = performance.now()
    const { level, begins, goesOn } = this.#texts
    if (this.#since === null) {
      this.#since = now
      this.#logger[level](fields, begins)
    } else if (now - this.#toldAt >= REMINDER_MS) {
      this.#logger[level]({ ...fields, forMs: Math.round(now - this.#since) }, goesOn)
    } else return
    this.#toldAt = now
  }

  end(fields: object): void {
    if (this.#since === null) return
    const afterMs = Math.round(performance.now() - this.#since)
    this.#since = null
    this.#logger.info({ ...fields, afterMs }, this.#texts.over)
  }
}
