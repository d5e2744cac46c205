// The place of an event in the order of its aggregate, for an inbox that keeps that order.
import { UnreadableMessageError } from '../errors.ts'
import { isStorable } from '../payload.ts'
import type { Place } from '../store/inbox.ts'
import type { InboxEvent } from './event.ts'

/** As in the outbox. */
const MAX_BYTES = { aggregateType: 255, aggregateId: 512 }

/** Who asked for order must not lose it without a word: an event that does not say its place is refused. */
export function requirePlace(event: InboxEvent): Place {
  const { seq } = event
  if (seq === null) throw missing('seq, a whole number')
  return {
    aggregateType: requireText('aggregateType', event),
    aggregateId: requireText('aggregateId', event),
    seq,
  }
}

function requireText(field: keyof typeof MAX_BYTES, event: InboxEvent): string {
  const text = event[field]
  const fits = text && isStorable(text) && Buffer.byteLength(text) <= MAX_BYTES[field]
  if (fits) return text
  throw missing(`${field}, a text of 1 to ${MAX_BYTES[field]} bytes without U+0000`)
}

function missing(what: string): UnreadableMessageError {
  return new UnreadableMessageError(
    `order: 'aggregate' needs ${what}, which the message does not have; take order: 'none', or name it yourself: once({ id, aggregateType, aggregateId, seq }, ...)`,
  )
}
