// Says once why the later events of an aggregate do not arrive: one of them failed and will be tried again, and the
// others have to follow it. Listens to lifecycle events only; nothing on the path depends on it.
import { performance } from 'node:perf_hooks'
import type { EventRef } from '../event/event.ts'
import { laneOf, type OrderScopes } from '../event/lane.ts'
import type { Lifecycle, Saved } from '../lifecycle.ts'
import type { Logger } from '../runtime/logger.ts'

/** How many lanes it remembers, and for how long after the next attempt: another process may have made that one. */
const MOST_LANES = 1_000
const GRACE_MS = 60_000

interface FailedEvent {
  readonly event: EventRef
  readonly retryAt: number
  reported: boolean
}

export function reportHeldBack(lifecycle: Lifecycle, scopes: OrderScopes, logger: Logger): void {
  const { events } = lifecycle
  const failed = new Map<number, FailedEvent>()

  // Another process may have sent them, which is not reported here.
  const forgetOld = () => {
    for (const [lane, { retryAt }] of failed) {
      if (retryAt + GRACE_MS < performance.now()) forget(lane)
    }
  }
  const onSaved = ({ event, lane }: Saved) => {
    const earlier = failed.get(lane)
    if (!earlier || earlier.reported) return
    if (earlier.retryAt + GRACE_MS < performance.now()) return forget(lane)
    earlier.reported = true
    const retryInMs = Math.max(0, Math.round(earlier.retryAt - performance.now()))
    logger.warn(
      { event, failed: earlier.event, retryInMs },
      'an event waits behind an earlier one of its aggregate that failed, so that they arrive in order; later ones wait too',
    )
  }
  const onEnd = ({ event }: { event: EventRef }) => {
    if (failed.size === 0) return
    const lane = laneOf(event, scopes)
    if (failed.get(lane)?.event.id === event.id) forget(lane)
  }
  const forget = (lane: number) => {
    failed.delete(lane)
    // A listener for this event costs every unit of work, so there is one only while something has failed.
    if (failed.size === 0) events.off('event:saved', onSaved)
  }
  events.on('event:failed', ({ event, lane, attempts, retryInMs }) => {
    // An outage counts no attempt, and its circuit is logged. A scheduled event has a lane of its own and holds no other.
    if (attempts === 0 || lane !== laneOf(event, scopes)) return
    const known = failed.get(lane)
    if (known === undefined && failed.size >= MOST_LANES) forgetOld()
    if (known === undefined && failed.size >= MOST_LANES) return
    if (failed.size === 0) events.on('event:saved', onSaved)
    const reported = known?.event.id === event.id && known.reported
    failed.set(lane, { event, retryAt: performance.now() + retryInMs, reported })
  })
  events.on('event:published', onEnd)
  events.on('event:dead', onEnd)
}
