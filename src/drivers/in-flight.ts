// The operations of a transaction that have begun and not ended, for a client of which one operation may be several statements.
// A statement of ours that has to be the last waits for them: one that failed after the save would turn COMMIT into a rollback.
export class InFlight {
  readonly #outer: InFlight | null
  readonly #operations = new Set<Promise<void>>()

  constructor(outer: InFlight | null = null) {
    this.#outer = outer
  }

  /** Follows an operation that has begun. The promise that it returns has the same outcome, and is the caller's to handle. */
  follow<T>(operation: PromiseLike<T>): Promise<T> {
    let end!: () => void
    this.#add(new Promise((resolve) => (end = resolve)))
    const result = operation.then(
      (value) => {
        end()
        return value
      },
      (error: unknown) => {
        end()
        throw error
      },
    )
    return Promise.resolve(result)
  }

  /** Resolves when every operation of this level and of those inside it has ended, however it did. */
  async ended(): Promise<void> {
    while (this.#operations.size > 0) await Promise.all(this.#operations)
  }

  /**
   * Runs work in a level of its own, and waits for the operations that it has begun. It does not wait for those of outer levels:
   * one of them may have opened this level in a hook, and would wait for itself.
   */
  async inside<T>(work: (level: InFlight) => Promise<T>): Promise<T> {
    const level = new InFlight(this)
    try {
      return await work(level)
    } finally {
      await level.ended()
    }
  }

  #add(operation: Promise<void>): void {
    this.#operations.add(operation)
    void operation.then(() => this.#operations.delete(operation))
    if (this.#outer) this.#outer.#add(operation)
  }
}
