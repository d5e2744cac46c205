// A contender's process that stays for several loads: it gets warm once, and waits while others take their turns.
import { setTimeout as delay } from 'node:timers/promises'
import { arrivalsByTurn } from './arrivals.ts'
import type { Load } from './job.ts'
import type { Place } from './places.ts'
import { ContenderProcess } from './run-process.ts'
import type { ServerCost } from './server-cost.ts'
import type { LoadTurn, Variant } from './turn.ts'

/** Long enough to record what was acked last. */
const RECORD_MS = 500

export class Session {
  readonly place: Place
  readonly #process: ContenderProcess
  readonly #turns: LoadTurn[] = []

  constructor(variant: Variant, place: Place) {
    this.place = place
    this.#process = new ContenderProcess({ ...variant, ...place, job: { kind: 'loads' } })
  }

  /** `calm` resolves when nothing else is going on. What arrived is not known before the session ends. */
  async load(
    job: Load,
    calm: () => Promise<void>,
    readCost: () => Promise<ServerCost>,
  ): Promise<LoadTurn> {
    await this.#process.ready
    await this.#process.ask(job, 'ready')
    await calm()
    const before = await readCost()
    const { result } = await this.#process.ask('go', 'measured')
    await delay(RECORD_MS)
    const after = await readCost()
    const cost = {
      statements: after.statements - before.statements,
      walBytes: after.walBytes - before.walBytes,
    }
    const turn: LoadTurn = { ...result, cost, arrivals: null }
    this.#turns.push(turn)
    return turn
  }

  async end(): Promise<void> {
    this.#process.say('finish')
    await this.#process.result()
  }

  /** Notes what arrived of each turn. */
  noteArrivals(ids: readonly number[]): void {
    const ends = this.#turns.map(({ emitted }) => emitted)
    for (const [n, arrivals] of arrivalsByTurn(ids, ends).entries()) {
      this.#turns[n]!.arrivals = arrivals
    }
  }
}
