// What the record writes into the row of an event that was not published: a failure, a dead letter and its copy, or only
// the end of the lease.
import { describeError } from '../errors.ts'
import { newEventId } from '../event/event-id.ts'
import { laneOf } from '../event/lane.ts'
import type { ResolvedOptions } from '../options/options.ts'
import type { FailureRecord } from '../store/outbox/outbox-store.ts'
import { DEAD_LETTER_COPY } from '../store/outbox/rows.ts'
import type { LeasedEvent } from './leased-event.ts'

export function toFailureRecord(
  { event, token, outcome }: LeasedEvent,
  { deadLetterTopic: topic, orderScopes }: Pick<ResolvedOptions, 'deadLetterTopic' | 'orderScopes'>,
): FailureRecord {
  const asItWas = {
    id: event.id,
    token,
    status: null,
    counts: false,
    delayMs: 0,
    error: null,
    copyId: null,
    copyLane: null,
  } as const
  if (outcome?.kind === 'failed') {
    const { counts, retryInMs: delayMs, error } = outcome
    const status = counts ? 'failed' : null
    return { ...asItWas, status, counts, delayMs, error: describeError(error) }
  }
  if (outcome?.kind !== 'dead') return asItWas
  const error = describeError(outcome.error)
  const died = { ...asItWas, status: 'dead_letter', counts: true, error } as const
  // A copy that dies is not copied again.
  if (topic === null || event.topic === topic) return died
  const copyId = newEventId()
  const copy = { ...event, id: copyId, topic, aggregateType: DEAD_LETTER_COPY }
  return { ...died, copyId, copyLane: laneOf(copy, orderScopes) }
}
