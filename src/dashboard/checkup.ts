// What the doctor found last, for the overview: a growing table or an old transaction is no trouble of delivery yet, and would
// not be seen there otherwise. The checks run once a minute while a page is open, and no request waits for them.
import { performance } from 'node:perf_hooks'
import type { Logger } from '../runtime/logger.ts'
import type { DoctorAnswer, Finding } from './api.ts'

const EVERY_MS = 60_000

/** What a look at the outbox finds by itself, and sooner. */
const SEEN_ANYWAY = ['circuit', 'dead', 'lag', 'lost-instance', 'no-instance', 'paused', 'locks']

export class Checkup {
  readonly #examine: () => Promise<DoctorAnswer>
  readonly #logger: Logger
  #found: readonly Finding[] = []
  #begunAt = Number.NEGATIVE_INFINITY
  #isRunning = false

  constructor(examine: () => Promise<DoctorAnswer>, logger: Logger) {
    this.#examine = examine
    this.#logger = logger
  }

  /** Runs the checks for a person. */
  async run(): Promise<DoctorAnswer> {
    const begunAt = performance.now()
    const answer = await this.#examine()
    this.#begunAt = begunAt
    this.#found = toGlance(answer.findings)
    return answer
  }

  /** Errors and warnings of the last run, which was a minute ago at most if pages ask all the time. */
  findings(): readonly Finding[] {
    if (!this.#isRunning && performance.now() - this.#begunAt >= EVERY_MS) this.#runAside()
    return this.#found
  }

  /** What it found may be cured, so the next request has it look again. */
  expire(): void {
    this.#begunAt = Number.NEGATIVE_INFINITY
  }

  #runAside(): void {
    this.#isRunning = true
    this.#begunAt = performance.now()
    this.run()
      .catch((error: unknown) => {
        this.#logger.debug({ err: error }, 'the checks for the dashboard failed')
      })
      .finally(() => {
        this.#isRunning = false
      })
  }
}

function toGlance(findings: readonly Finding[]): Finding[] {
  return findings
    .filter(({ severity, kind }) => severity !== 'info' && !SEEN_ANYWAY.includes(kind))
    .map((finding) => ({ ...finding, link: finding.link ?? { to: 'doctor', query: '' } }))
}
