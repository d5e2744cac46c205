// The place of an event in the order of its aggregate and lane, for an inbox that keeps that order.
import { UnreadableMessageError } from '../errors.ts'
import { laneByEvent } from '../event/lane.ts'
import { isStorable } from '../checks/storable.ts'
import type { Place } from '../store/inbox/record.ts'
import type { InboxEvent } from './event.ts'

/** The same limits as in the outbox. */
const MAX_BYTES = { aggregateType: 255, aggregateId: 512 }

/** Refuses an event without a place, because handling it could silently break the order. */
export function requirePlace(event: InboxEvent): Place {
  const { seq } = event
  if (seq === null) throw missing('seq (a whole number)')
  return {
    aggregateType: requireText('aggregateType', event),
    aggregateId: requireText('aggregateId', event),
    lane: sharedLane(event),
    seq,
  }
}

/**
 * An outbox with `order: 'none'` gives each event its own lane, in which no event is ever late. The inbox keeps such
 * events in order by their aggregate alone.
 */
function sharedLane(event: InboxEvent): number | null {
  return event.lane === laneByEvent(event) ? null : event.lane
}

function requireText(field: keyof typeof MAX_BYTES, event: InboxEvent): string {
  const text = event[field]
  const fits = text && isStorable(text) && Buffer.byteLength(text) <= MAX_BYTES[field]
  if (fits) return text
  throw missing(`${field} (a string of 1 to ${MAX_BYTES[field]} bytes without U+0000)`)
}

function missing(what: string): UnreadableMessageError {
  return new UnreadableMessageError(
    `order: 'aggregate' needs ${what}, but the message has none that is valid; use order: 'none', or pass it yourself: once({ id, aggregateType, aggregateId, seq }, ...)`,
  )
}
