// When an event is to be delivered, from its fields. The database's clock decides when that is; the local one only refuses
// impossible times.
import { formatDuration, show, toMilliseconds } from '../checks/duration.ts'
import { EventRefusedError, messageOf } from '../errors.ts'
import type { EventSchedule, NewEvent } from './event.ts'

const TEN_YEARS_MS = 3_653 * 86_400_000

/** null: now. */
export function scheduleOf(
  type: string,
  { deliverAt, deliverAfter }: Pick<NewEvent, 'deliverAt' | 'deliverAfter'>,
): EventSchedule | null {
  if (deliverAt !== undefined && deliverAfter !== undefined) {
    throw invalid(`${type}: deliverAt and deliverAfter exclude each other; pass one of them`)
  }
  if (deliverAfter !== undefined) return { afterMs: requireSpan(type, deliverAfter) }
  if (deliverAt === undefined) return null
  if (!(deliverAt instanceof Date) || Number.isNaN(deliverAt.getTime())) {
    throw invalid(`${type}: deliverAt must be a valid Date, got ${show(deliverAt)}`)
  }
  if (deliverAt.getTime() > Date.now() + TEN_YEARS_MS) {
    throw invalid(`${type}: deliverAt must be within ten years, got ${deliverAt.toISOString()}`)
  }
  // Postgres has no time as early as the earliest Date. Everything in the past means now.
  return { at: new Date(Math.max(0, deliverAt.getTime())) }
}

function requireSpan(type: string, value: unknown): number {
  let ms: number
  try {
    ms = toMilliseconds('deliverAfter', value)
  } catch (error) {
    throw invalid(`${type}: ${messageOf(error)}`)
  }
  if (ms <= TEN_YEARS_MS) return ms
  const limit = formatDuration(TEN_YEARS_MS)
  throw invalid(`${type}: deliverAfter must be at most ${limit}, ten years, got ${show(value)}`)
}

function invalid(message: string): EventRefusedError {
  return new EventRefusedError('EVENT_INVALID', message)
}
