// outbox.reroute(): moves events that wait for a topic to another one, page by page. What was moved before a crash stays
// moved, and a second call moves the rest.
import { requireName } from '../checks/checks.ts'
import { OutboxOptionsError } from '../errors.ts'
import { requireRoute } from '../event/topic.ts'
import type { Bell } from '../runtime/bell.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Store } from '../store/outbox/outbox-store.ts'
import type { ReroutePlace, Rerouted } from '../store/outbox/reroute.ts'
import { type DoneBy, doneBy } from './done-by.ts'

export interface RerouteParts {
  readonly store: Pick<Store<never>, 'reroute'>
  readonly logger: Logger
  /** The topics that have a publisher. @default null: all have, or the publishers are not known here */
  readonly routedTopics?: ReadonlySet<string> | null
  /** Rung when the events may be sent. */
  readonly bell: Bell
}

export interface RerouteResult {
  /** How many events have the new topic now. */
  readonly moved: number
  /** How many were left, because a process held them. A second call takes them, once they are given back. */
  readonly held: number
}

const PAGE = 1_000

export async function reroute(
  { store, logger, bell, routedTopics = null }: RerouteParts,
  from: string,
  to: string,
  details: DoneBy,
): Promise<RerouteResult> {
  const who = doneBy('reroute()', details)
  const topics = { from: requireName('from', from), to: requireName('to', to) }
  if (from === to) throw new OutboxOptionsError(`reroute() needs two topics, got '${from}' twice`)
  requireRoute("the topic 'to' of reroute()", to, routedTopics)
  let [moved, held] = [0, 0]
  let after: ReroutePlace | null = null
  try {
    do {
      const page: Rerouted = await store.reroute(topics, { limit: PAGE, after })
      moved += page.moved
      held += page.held
      after = page.last
    } while (after !== null)
    return { moved, held }
  } finally {
    // Also when a page failed: what was moved before stays moved.
    if (moved > 0) logger.info({ ...topics, moved, held, ...who }, 'events moved to another topic')
    bell.ring()
  }
}
