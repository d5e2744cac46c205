// The pauses that this process knows of. A paused topic is like one whose circuit is open, but without probes: its events
// wait in the table, and none uses up attempts. upkeep/presence.ts reads them from the database with each beat. While the
// database cannot be reached, the last known ones stay in force.
import type { Lifecycle } from '../lifecycle.ts'
import type { Bell } from '../runtime/bell.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Pause } from '../store/outbox/control-store.ts'

const PAUSED = 'paused; events wait in the table until it is resumed'
const RESUMED = 'resumed; what waited goes out'

export interface PausesParts {
  readonly lifecycle: Lifecycle
  readonly logger: Logger
  /** Rung when something was resumed, so that its backlog drains. */
  readonly bell: Bell
}

export class Pauses {
  readonly #parts: PausesParts
  #known: ReadonlyMap<string | null, Pause> = new Map()
  #readsBegun = 0
  #lastLearned = 0

  constructor(parts: PausesParts) {
    this.#parts = parts
  }

  /** Whether anything is paused. */
  get areAny(): boolean {
    return this.#known.size > 0
  }

  get isEverything(): boolean {
    return this.#known.has(null)
  }

  /** The topics that are paused by name. */
  get topics(): string[] {
    return [...this.#known.keys()].filter((topic) => topic !== null)
  }

  isPaused(topic: string): boolean {
    return this.areAny && (this.#known.has(null) || this.#known.has(topic))
  }

  /**
   * Takes over what is read. Two reads may run at once, such as a beat and the one after pause(). The one that began last
   * has seen more, so an earlier one that ends after it is ignored.
   */
  async learn(read: () => Promise<readonly Pause[]>): Promise<void> {
    const turn = (this.#readsBegun += 1)
    const found = await read()
    if (turn < this.#lastLearned) return
    this.#lastLearned = turn
    this.#replace(new Map(found.map((pause) => [pause.topic, pause])))
  }

  #replace(found: ReadonlyMap<string | null, Pause>): void {
    const { lifecycle, logger, bell } = this.#parts
    const before = this.#known
    this.#known = found
    for (const { topic, by, reason } of found.values()) {
      if (before.has(topic)) continue
      logger.warn({ topic, by, reason }, `${nameOf(topic)} ${PAUSED}`)
      lifecycle.tell('topic:paused', { topic, by, reason })
    }
    const ended = [...before.values()].filter(({ topic }) => !found.has(topic))
    for (const { topic, by, reason } of ended) {
      logger.info({ topic, by, reason }, `${nameOf(topic)} ${RESUMED}`)
      lifecycle.tell('topic:resumed', { topic, by, reason })
    }
    if (ended.length > 0) bell.ring()
  }
}

function nameOf(topic: string | null): string {
  return topic === null ? 'everything is' : 'a topic is'
}
