// The beat: every ten seconds one statement renews this instance's row and reads the pauses, so that all instances obey a
// pause within 15 s. A circuit that opens or closes brings the next beat forward, but no more than once in ten seconds. Once a minute
// a beat also writes what the instance did. A crash leaves the row, which others delete later.
import { performance } from 'node:perf_hooks'
import type { Pauses } from '../delivery/pauses.ts'
import type { ResolvedOptions } from '../options/options.ts'
import type { NewLoop } from '../runtime/background.ts'
import type { Circuit, Lifecycle } from '../lifecycle.ts'
import type { Loop } from '../runtime/loop.ts'
import type { ControlStore, OwnInstance } from '../store/outbox/control-store.ts'
import type { History } from './history.ts'
import { describeInstance } from './own-instance.ts'
import type { Reporter } from './reporter.ts'

/** From the beginning of one beat to that of the next, so that a slow one does not put off the others. */
const BEAT_MS = 10_000
/** After a change of a circuit, so that people see an outage and its end at once. Changes within it share a beat. */
const NEWS_MS = 1_000

export interface PresenceParts {
  readonly control: Pick<ControlStore, 'beat' | 'leave' | 'pauses'>
  readonly options: ResolvedOptions
  readonly pauses: Pauses
  readonly reporter: Pick<Reporter, 'report'>
  readonly history: Pick<History, 'begin' | 'unwritten' | 'written' | 'atEnd'>
  readonly lifecycle: Lifecycle
  readonly newLoop: NewLoop
}

interface Present {
  readonly self: Omit<OwnInstance, 'upMs' | 'report'>
  readonly since: number
}

export class Presence {
  readonly #parts: PresenceParts
  readonly #loop: Loop
  #present: Present | null = null
  #begunAt = 0
  /** When a change of a circuit last brought a beat forward. */
  #hurriedAt = Number.NEGATIVE_INFINITY

  constructor(parts: PresenceParts) {
    this.#parts = parts
    const nextInMs = () => Math.max(0, this.#begunAt + BEAT_MS - performance.now())
    this.#loop = parts.newLoop('beat', nextInMs, async () => {
      await this.#beat()
      return false
    })
    this.#listen(parts.lifecycle)
  }

  /** The first beat: when it resolves, the pauses are known. */
  async enter(): Promise<void> {
    const { options, history } = this.#parts
    this.#present = { self: describeInstance(options), since: performance.now() }
    history.begin()
    try {
      await this.#beat()
    } catch (error) {
      this.#present = null
      throw error
    }
    this.#loop.start({ atOnce: false })
  }

  /** Takes the instance off the list, if the database is there. */
  async leave(): Promise<void> {
    const present = this.#present
    this.#present = null
    await this.#loop.stop()
    if (!present) return
    const { control, options, history } = this.#parts
    await control.leave(present.self.id, history.atEnd()).catch((error: unknown) => {
      options.logger.debug({ err: error }, 'could not take this instance off the list')
    })
  }

  /** Reads the pauses for an instance that does not beat. */
  async readPauses(): Promise<void> {
    const { pauses, control } = this.#parts
    if (!this.#present) await pauses.learn(() => control.pauses())
  }

  #listen({ events }: Lifecycle): void {
    const open = new Set<string>()
    events.on('circuit:open', (circuit) => {
      // It opens again after every probe that fails, which is no news.
      if (open.has(keyOf(circuit))) return
      open.add(keyOf(circuit))
      this.#hurry()
    })
    events.on('circuit:closed', (circuit) => {
      open.delete(keyOf(circuit))
      this.#hurry()
    })
  }

  // A circuit that flaps would bring forward a beat a second. So a change soon after another one waits for the next beat.
  #hurry(): void {
    const now = performance.now()
    if (now - this.#hurriedAt < BEAT_MS) return
    if (this.#loop.wakeWithin(NEWS_MS)) this.#hurriedAt = now
  }

  async #beat(): Promise<void> {
    const { pauses, control, reporter, history } = this.#parts
    const present = this.#present
    if (!present) return
    this.#begunAt = performance.now()
    const upMs = this.#begunAt - present.since
    const self = { ...present.self, upMs, report: reporter.report() }
    await pauses.learn(() => control.beat(self, history.unwritten()))
    history.written()
  }
}

function keyOf({ publisher, topic }: Circuit): string {
  return JSON.stringify([publisher, topic])
}
