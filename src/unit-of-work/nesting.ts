// Which nested transactions run inside a transaction, level by level. Savepoints are a stack: one that rolls back also
// undoes what ran beside it, although that code saw its own work succeed.
import { OutboxError, overError } from '../errors.ts'

export class Nesting {
  readonly #outer: Nesting | null
  readonly #running = new Set<Nesting>()
  #ranBeside = false
  #isTorn = false

  constructor(outer: Nesting | null = null) {
    this.#outer = outer
  }

  /** Runs a nested transaction and passes it its own level. */
  async nest<T>(savepoint: (inner: Nesting) => Promise<T>): Promise<T> {
    const inner = new Nesting(this)
    for (const other of this.#running) other.#ranBeside = inner.#ranBeside = true
    this.#running.add(inner)
    try {
      return await savepoint(inner)
    } catch (error) {
      for (let one: Nesting = inner; one.#outer; one = one.#outer) {
        if (one.#ranBeside) one.#outer.#isTorn = true
      }
      throw error
    } finally {
      this.#running.delete(inner)
    }
  }

  /** Runs when the work of this level has ended. Throws if the work must not be kept. */
  check(): void {
    if (this.#running.size > 0) throw overError('a nested transaction was still running')
    if (!this.#isTorn) return
    throw new OutboxError(
      'NESTED',
      'a nested transaction rolled back while another ran beside it, which undoes both; await one before the next',
    )
  }
}
