// Actions that must not overlap: each begins when the one before has settled.

export class Turns {
  #last: Promise<unknown> = Promise.resolve()

  take<T>(action: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(action)
    this.#last = mine.catch(() => {})
    return mine
  }
}
