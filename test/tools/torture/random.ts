// Chance from a seed (mulberry32): the same seed makes the same choices.

export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 up to, but not including, 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number, both ends included. */
  between(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1))
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  /** One of them, each as likely as its weight. */
  pick<T>(choices: readonly (readonly [weight: number, choice: T])[]): T {
    let left = this.next() * totalWeight(choices)
    for (const [weight, choice] of choices) {
      left -= weight
      if (left < 0) return choice
    }
    return choices.at(-1)![1]
  }
}

export function totalWeight(
  choices: readonly (readonly [weight: number, choice: unknown])[],
): number {
  return choices.reduce((sum, [weight]) => sum + weight, 0)
}
