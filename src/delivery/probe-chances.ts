// When a destination is out of reach, flush() and drain() wait for one probe of it. A connection that
// broke while the process was frozen is replaced by that probe. If the probe fails, the destination is down, and they do not
// wait for it.
import type { Circuits } from './circuits.ts'

export class ProbeChances {
  readonly #circuits: Pick<Circuits, 'probes'>
  /** How many probes of each destination had failed when it was first seen here. */
  readonly #failedBefore = new Map<string | null, number>()

  constructor(circuits: Pick<Circuits, 'probes'>) {
    this.#circuits = circuits
  }

  /** Whether the topic, or its broker, is out of reach and has not failed a probe since that was first seen here. */
  has(topic: string): boolean {
    return this.#left().some((one) => one.topic === null || one.topic === topic)
  }

  /** Whether any destination has its probe still ahead, or may have it now. */
  get next(): 'none' | 'coming' | 'offered' {
    const left = this.#left()
    if (left.length === 0) return 'none'
    return left.some(({ isHalfOpen }) => !isHalfOpen) ? 'coming' : 'offered'
  }

  #left() {
    return this.#circuits.probes().filter(({ topic, failedProbes }) => {
      const before = this.#failedBefore.get(topic) ?? failedProbes
      this.#failedBefore.set(topic, before)
      return failedProbes <= before
    })
  }
}
