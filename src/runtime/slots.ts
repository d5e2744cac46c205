// Actions of which only a few run at once; the others wait for their turn, in order.

export class Slots {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  async take<T>(action: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await action()
    } finally {
      // The slot goes to the next one, without being free in between.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free += 1
    }
  }
}
