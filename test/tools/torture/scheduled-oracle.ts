// The verdict on scheduled events: what was cancelled has never gone out, nothing went out early, and none was in line with
// the events of its aggregate. Times are the database's: of the journal, of the row, and of the claim before each send.
import type { JournalEntry } from './oracle.ts'

/** A send of a scheduled event began, and when its row was claimed for it. */
export interface ScheduledSend {
  readonly id: string
  readonly claimedMs: number
}

export interface ScheduledRow {
  readonly id: string
  readonly status: string
  readonly dueMs: number
  /** Deleted since. */
  readonly isGone: boolean
}

export interface Scheduling {
  /** The events whose cancellation reported success in a transaction that committed, once for each time. */
  readonly cancels: readonly string[]
  /** The events that may have been cancelled outside of a transaction, with or without an answer. */
  readonly loneCancels: readonly string[]
  /** All that were in the table. */
  readonly rows: readonly ScheduledRow[]
  /** Events that share their lane with a scheduled one. */
  readonly sharedLanes: number
}

export interface ScheduledVerdict {
  readonly scheduled: number
  readonly cancelled: number
  /** Cancelled, and sent or about to be sent all the same. */
  readonly cancelledSent: number
  /** Events whose cancellation reported success more than once. */
  readonly cancelledTwice: number
  /** Claimed before they were due. */
  readonly early: number
  /** Arrived after an event that their own unit emitted after them. */
  readonly passed: number
  readonly sharedLanes: number
}

/** An event whose row went away without a cancellation is not among them, and counts as lost. */
export function cancelledIn({ cancels, loneCancels, rows }: Scheduling): ReadonlySet<string> {
  const lone = new Set(loneCancels)
  const unheard = rows.filter(
    ({ id, isGone, status }) => isGone && isCancelled(status) && lone.has(id),
  )
  return new Set([...cancels, ...unheard.map(({ id }) => id)])
}

const isCancelled = (status: string) => status === 'scheduled' || status === 'pending'

/** `arrivals`: the ids of events, in the order of their partitions. */
export function judgeScheduled(
  journal: readonly JournalEntry[],
  arrivals: readonly string[],
  sends: readonly ScheduledSend[],
  scheduling: Scheduling,
): ScheduledVerdict {
  const entries = journal.filter(({ dueMs }) => dueMs !== null)
  const cancelled = cancelledIn(scheduling)
  const { sharedLanes, cancels } = scheduling
  const sent = new Set([...arrivals, ...sends.map(({ id }) => id)])
  return {
    scheduled: entries.length,
    cancelled: cancelled.size,
    cancelledSent: [...cancelled].filter((id) => sent.has(id)).length,
    cancelledTwice: cancels.length - new Set(cancels).size,
    early: countEarly(entries, new Set(arrivals), sends, scheduling.rows),
    passed: countPassed(journal, arrivals),
    sharedLanes,
  }
}

/** With those that arrived without a note of when they were claimed. */
function countEarly(
  entries: readonly JournalEntry[],
  arrived: ReadonlySet<string>,
  sends: readonly ScheduledSend[],
  rows: readonly ScheduledRow[],
): number {
  const inTable = new Map(rows.map(({ id, dueMs }) => [id, dueMs]))
  const claims = new Map<string, number>()
  for (const { id, claimedMs } of sends) {
    claims.set(id, Math.min(claimedMs, claims.get(id) ?? Infinity))
  }
  return entries.filter(({ eventId, dueMs }) => {
    const claimedMs = claims.get(eventId) ?? (arrived.has(eventId) ? -Infinity : Infinity)
    // The claim's time comes in whole milliseconds.
    return claimedMs < Math.floor(Math.max(dueMs!, inTable.get(eventId) ?? 0))
  }).length
}

function countPassed(journal: readonly JournalEntry[], arrivals: readonly string[]): number {
  const positions = new Map<string, number>()
  for (const [position, id] of arrivals.entries()) {
    if (!positions.has(id)) positions.set(id, position)
  }
  const groupOf = ({ xid, account }: JournalEntry) => `${xid} ${account}`
  const firstOthers = new Map<string, number>()
  for (const entry of journal.filter(({ dueMs }) => dueMs === null)) {
    const position = positions.get(entry.eventId) ?? Infinity
    firstOthers.set(groupOf(entry), Math.min(position, firstOthers.get(groupOf(entry)) ?? Infinity))
  }
  return journal.filter((entry) => {
    const position = entry.dueMs === null ? undefined : positions.get(entry.eventId)
    return position !== undefined && (firstOthers.get(groupOf(entry)) ?? Infinity) < position
  }).length
}
