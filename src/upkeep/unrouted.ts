// Events whose topic had a route when they were saved and has none now. No publisher claims them, and later events of
// their lanes wait behind them. They are not lost, but the operator has to know.
import type { Logger } from '../runtime/logger.ts'
import type { Store } from '../store/outbox/outbox-store.ts'

/** How many events are examined, those due first. */
const COUNTED = 10_000

export class Unrouted {
  readonly #store: Pick<Store<never>, 'countUnrouted'>
  readonly #routed: ReadonlySet<string> | null
  readonly #logger: Logger

  /** `routed`: the topics that have a route; null if every topic has one. */
  constructor(
    store: Pick<Store<never>, 'countUnrouted'>,
    routed: ReadonlySet<string> | null,
    logger: Logger,
  ) {
    this.#store = store
    this.#routed = routed
    this.#logger = logger
  }

  /** How many such events there are, by topic. */
  async count(): Promise<Record<string, number>> {
    return this.#routed ? await this.#store.countUnrouted([...this.#routed], COUNTED) : {}
  }

  /** Logs a warning while there are such events. */
  async check(): Promise<void> {
    const byTopic = await this.count()
    if (Object.keys(byTopic).length === 0) return
    this.#logger.warn(
      { byTopic },
      'events wait for topics that have no route here; add the topics to the routes of routerPublisher(), or set its option otherwise',
    )
  }
}
