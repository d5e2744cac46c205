// The loads of one process: it gets warm before the first one, and gets to know each kind of load before it is measured.
import type { Acks } from './acks.ts'
import type { Contender } from './contender.ts'
import {
  FIRST_UNITS,
  type Load,
  type LoadResult,
  MIN_UNITS,
  NEW_LOAD,
  type Usage,
  WARM_UP,
  WARM_UP_CONCURRENCY,
  type WarmUp,
} from './job.ts'
import { runLoad } from './load.ts'

export class LoadLines {
  readonly #contender: Contender
  readonly #acks: Acks
  readonly #sends: boolean
  /** Units a second, by the kind of load. */
  readonly #rates = new Map<string, number>()
  #emitted = 0

  constructor(contender: Contender, acks: Acks, sends: boolean) {
    this.#contender = contender
    this.#acks = acks
    this.#sends = sends
  }

  async warmUp(load: Load): Promise<void> {
    const isWarm = this.#emitted > 0
    // Of a load with a pace there is no rate to find out.
    const isKnown = load.perSecond !== undefined || this.#rates.has(kindOf(load))
    if (isWarm && isKnown) return
    await this.#warmUp(load, isWarm ? NEW_LOAD : (load.warmUp ?? WARM_UP))
  }

  async measure(load: Load): Promise<Omit<LoadResult, keyof Usage>> {
    const rate = load.perSecond ?? this.#rates.get(kindOf(load))!
    const units = Math.max(MIN_UNITS, Math.round(rate * load.seconds))
    const measured = await this.#run(load, units)
    return { ...measured, emitted: this.#emitted }
  }

  async #warmUp(load: Load, { units, seconds }: WarmUp): Promise<void> {
    const { perSecond: _, ...unpaced } = load
    const concurrency = Math.max(load.concurrency, WARM_UP_CONCURRENCY)
    // Few at first. What would be too short to tell a rate by is left.
    let warmUnits = FIRST_UNITS
    let unitsLeft = units
    for (let left = seconds; left > seconds / 10 && unitsLeft > 0; ) {
      const warm = await this.#run({ ...unpaced, concurrency }, warmUnits)
      const rate = warmUnits / warm.seconds
      this.#rates.set(kindOf(load), rate)
      left -= warm.seconds
      unitsLeft -= warmUnits
      warmUnits = Math.ceil(Math.min(warmUnits * 10, rate * left, unitsLeft))
    }
  }

  async #run(load: Load, units: number) {
    const portion = { ...load, units, firstId: this.#emitted }
    const measured = await runLoad(this.#contender, this.#acks, portion, this.#sends)
    this.#emitted += measured.committed
    return measured
  }
}

function kindOf({
  concurrency,
  eventsPerUnit,
  payloadBytes,
  keys,
}: Omit<Load, 'perSecond'>): string {
  return [concurrency, eventsPerUnit, payloadBytes, keys].join()
}
