// start() and stop() of an outbox or an inbox. Each may be called any number of times; they never run together.

export class StartStop {
  readonly #start: () => Promise<void>
  readonly #stop: () => Promise<void>
  #starting: Promise<void> | null = null
  #stopping: Promise<void> | null = null

  constructor(start: () => Promise<void>, stop: () => Promise<void>) {
    this.#start = start
    this.#stop = stop
  }

  start(): Promise<void> {
    if (this.#stopping) return this.#stopping.then(() => this.start())
    this.#starting ??= this.#start().catch((error) => {
      this.#starting = null
      throw error
    })
    return this.#starting
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stopOnce().finally(() => {
      this.#starting = null
      this.#stopping = null
    })
    return this.#stopping
  }

  async #stopOnce(): Promise<void> {
    // A failed start has nothing to stop, and its caller already has the error.
    await this.#starting?.catch(() => {})
    await this.#stop()
  }
}
