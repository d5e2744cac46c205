// Events that were saved while their topic had a route, which has since been removed: nobody claims them, and what
// follows them in their aggregates waits too. They are not lost, but somebody has to be told.
import type { Logger } from './logger.ts'
import type { Store } from './store/store.ts'

/** Among as many events that are due first. */
const COUNTED = 10_000

export class Unrouted {
  readonly #store: Pick<Store<never>, 'countUnrouted'>
  readonly #routed: ReadonlySet<string> | null
  readonly #logger: Logger

  /** `routed`: the topics that have a route; null if all have. */
  constructor(
    store: Pick<Store<never>, 'countUnrouted'>,
    routed: ReadonlySet<string> | null,
    logger: Logger,
  ) {
    this.#store = store
    this.#routed = routed
    this.#logger = logger
  }

  /** How many there are, by topic. */
  async count(): Promise<Record<string, number>> {
    return this.#routed ? await this.#store.countUnrouted([...this.#routed], COUNTED) : {}
  }

  /** Warns while there are any. */
  async check(): Promise<void> {
    const byTopic = await this.count()
    if (Object.keys(byTopic).length === 0) return
    this.#logger.warn(
      { byTopic },
      'events wait for topics that have no route here: add them to the routes of routerPublisher(), or set otherwise',
    )
  }
}
