// Lets one part signal that there may be work, without knowing which part does it. A ring that is missed costs latency,
// never delivery (rule 10).

export class Bell {
  readonly #listeners: (() => void)[] = []

  onRing(listener: () => void): void {
    this.#listeners.push(listener)
  }

  ring(): void {
    for (const listener of this.#listeners) listener()
  }
}
