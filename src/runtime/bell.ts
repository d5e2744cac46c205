// Lets one part signal that there may be work, without knowing which part does it. A ring that is missed costs latency,
// never delivery (rule 10).

export class Bell {
  readonly #listeners = new Set<() => void>()

  /** Returns a function that removes the listener. */
  onRing(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  ring(): void {
    for (const listener of this.#listeners) listener()
  }
}

/** Waits until one of the bells rings, but no longer than that. Keeps the process alive meanwhile. */
export async function awaitRing(bells: readonly Bell[], ms: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer)
      for (const remove of removals) remove()
      resolve()
    }
    const timer = setTimeout(end, Math.max(0, ms))
    const removals = bells.map((bell) => bell.onRing(end))
  })
}
