// The events that this process committed, that have no outcome yet, and that are not on the immediate path: saved without a
// lease, given back, or failed there. flush() starts from them. On the path itself, an event that goes out at once costs one
// look at an empty map. All of this is in memory: a crash loses nothing, because every event here is a row in the table.
import { type EventRef, type LaneRef, refOf } from '../event/event.ts'
import { Bell } from '../runtime/bell.ts'

/** Why an event was not delivered, or not yet. */
export interface OwnFailure {
  /** Failed attempts so far. */
  readonly attempts: number
  readonly error: string
  /** Whether it is a dead letter. Otherwise the outbox tries it again later. */
  readonly isDead: boolean
}

export interface OwnEvent {
  readonly event: EventRef
  readonly lane: number
  /** null: delivered. undefined: neither delivered nor failed, as far as this process knows. */
  failure: OwnFailure | null | undefined
  /** Whether it is not in the table, although rows stay there when they are published: it was undone or discarded. */
  isGone: boolean
}

export class OwnEvents {
  readonly #open = new Map<string, OwnEvent>()
  readonly #most: number
  #untracked = 0
  /** Rung when one of them was delivered or failed. */
  readonly changed = new Bell()

  /** Rule 9: at most this many are kept, without their payloads. Of the others only the number is known. */
  constructor(most: number) {
    this.#most = most
  }

  note(event: LaneRef): void {
    if (this.#open.has(event.id)) return
    if (this.#open.size >= this.#most) this.#untracked += 1
    else {
      const own = { event: refOf(event), lane: event.lane, failure: undefined, isGone: false }
      this.#open.set(event.id, own)
    }
  }

  /** All of them now. What failed may have been retried since, so nothing counts as failed any more. */
  all(): OwnEvent[] {
    const all = [...this.#open.values()]
    for (const own of all) own.failure = undefined
    return all
  }

  /** How many events were not kept since the last call. */
  takeUntracked(): number {
    const count = this.#untracked
    this.#untracked = 0
    return count
  }

  delivered(id: string): void {
    if (this.#open.size > 0) this.#learn(id, null)
  }

  failed(id: string, failure: OwnFailure): void {
    if (this.#open.size > 0) this.#learn(id, failure)
  }

  gone(id: string): void {
    const own = this.#open.get(id)
    if (own) own.isGone = true
    this.#open.delete(id)
  }

  #learn(id: string, failure: OwnFailure | null): void {
    const own = this.#open.get(id)
    if (!own) return
    own.failure = failure
    if (failure === null || failure.isDead) this.#open.delete(id)
    this.changed.ring()
  }
}
