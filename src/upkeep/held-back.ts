// Says once why the later events of an aggregate do not arrive: one of them failed and will be tried again, and the
// others have to follow it. Listens to lifecycle events only; nothing on the path depends on it.
import { performance } from 'node:perf_hooks'
import type { EventRef } from '../event/event.ts'
import { laneOf, type OrderScopes } from '../event/lane.ts'
import type { Lifecycle } from '../lifecycle.ts'
import type { Logger } from '../runtime/logger.ts'

/** How many lanes it remembers, and for how long after the next attempt: another process may have made that one. */
const MOST_LANES = 1_000
const GRACE_MS = 60_000

interface FailedEvent {
  readonly event: EventRef
  readonly retryInMs: number
  readonly until: number
  reported: boolean
}

export function reportHeldBack(lifecycle: Lifecycle, scopes: OrderScopes, logger: Logger): void {
  const { events } = lifecycle
  const failed = new Map<number, FailedEvent>()

  const onSaved = ({ event }: { event: EventRef }) => {
    const earlier = failed.get(laneOf(event, scopes))
    if (!earlier || earlier.reported || earlier.until < performance.now()) return
    earlier.reported = true
    logger.warn(
      { event, failed: earlier.event, retryInMs: earlier.retryInMs },
      'an event waits behind an earlier one of its aggregate that failed, so that they arrive in order; later ones wait too',
    )
  }
  const onEnd = ({ event }: { event: EventRef }) => {
    if (failed.size === 0) return
    const lane = laneOf(event, scopes)
    if (failed.get(lane)?.event.id === event.id) failed.delete(lane)
    // A listener for this event costs every unit of work, so there is one only while something has failed.
    if (failed.size === 0) events.off('event:saved', onSaved)
  }
  events.on('event:failed', ({ event, attempts, retryInMs }) => {
    // An outage counts no attempt, and its circuit is logged.
    if (attempts === 0) return
    const lane = laneOf(event, scopes)
    const known = failed.get(lane)
    if (known === undefined && failed.size === MOST_LANES) return
    if (failed.size === 0) events.on('event:saved', onSaved)
    const reported = known?.event.id === event.id && known.reported
    failed.set(lane, {
      event,
      retryInMs,
      until: performance.now() + retryInMs + GRACE_MS,
      reported,
    })
  })
  events.on('event:published', onEnd)
  events.on('event:dead', onEnd)
}
