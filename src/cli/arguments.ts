// Values of options and arguments, checked while they are parsed. A message names the value and what is expected.
import { InvalidArgumentError } from 'commander'
import { isStorable } from '../checks/storable.ts'
import { isEventId } from '../checks/filter-values.ts'
import { isDuration, toMilliseconds } from '../checks/duration.ts'
import { parseTime } from '../checks/time.ts'

export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const number = Number(text)
    if (/^\d+$/.test(text) && number >= min && number <= max) return number
    throw new InvalidArgumentError(`Expected a whole number from ${min} to ${max}.`)
  }
}

/** Such as `90s`, `15m`, `2h` or `7d`, in milliseconds. */
export function duration(text: string): number {
  if (isDuration(text)) return toMilliseconds('the duration', text)
  throw new InvalidArgumentError('Expected a duration such as 90s, 15m, 2h or 7d.')
}

/** A time, or how long ago it was by the database's clock. */
export type Moment = Date | { readonly agoMs: number }

/** A time as ISO 8601, or how long ago it was: `2h`. */
export function moment(text: string): Moment {
  if (isDuration(text)) return { agoMs: duration(text) }
  const date = parseTime(text)
  if (date) return date
  throw new InvalidArgumentError(
    'Expected a time such as 2026-01-31T12:00:00Z, or how long ago it was, such as 2h.',
  )
}

/** A topic. The empty one is refused: it would mean everything. */
export function topicName(text: string): string {
  if (text !== '' && isStorable(text)) return text
  throw new InvalidArgumentError('Expected the name of a topic.')
}

/** Postgres cuts longer names, and the statement would then be about another role. */
export function roleName(text: string): string {
  if (text !== '' && isStorable(text) && Buffer.byteLength(text) <= 63) return text
  throw new InvalidArgumentError('Expected the name of a role, of 63 bytes at most.')
}

export function eventId(text: string): string {
  if (isEventId(text)) return text.toLowerCase()
  throw new InvalidArgumentError('Expected the id of an event, a UUID.')
}

export function eventIds(text: string, before: readonly string[] | undefined): string[] {
  return [...(before ?? []), eventId(text)]
}
