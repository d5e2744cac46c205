// Failures: dead letters, and events that failed and rest until their next attempt, in groups of one cause. Once the cause is
// fixed, a person retries or discards a group. Needs a store and no publisher.
import { performance } from 'node:perf_hooks'
import { rejectUnknown, requireCount, requireDuration, requireOneOf } from '../checks/checks.ts'
import type { Duration } from '../checks/duration.ts'
import { requireDates } from '../checks/filter-values.ts'
import type {
  FailureFilter,
  FailureGroup,
  FailurePage,
  FailuresChanged,
  FailuresOfKind,
  FailureStatus,
} from '../store/outbox/failure-store.ts'
import type { Count } from '../store/outbox/outbox-store.ts'
import {
  changeFailures,
  checkFields,
  FAILURE_FIELDS,
  type FailureParts,
  requireSelection,
} from './change-failures.ts'
import { type DoneBy, doneBy } from './done-by.ts'

/** Which failures to change: a group, a filter, or `{ all: true }` for every one. */
export type FailureSelection = FailureFilter | FailureGroup | { all: true }

export interface FailureGroupListing {
  /** How many groups, the largest first. @default 100 */
  limit?: number
}

const TIMES = ['failedSince', 'failedBefore', 'savedSince', 'savedBefore']
const FILTERS = ['status', ...FAILURE_FIELDS, ...TIMES]

/** Counted no further. */
const COUNTED = 100_000
/** So many failures are looked at in one statement. */
const PAGE = 10_000
/** With an error, which takes longer to compare. */
const PAGE_BY_ERROR = 2_000

export interface FailureCounting {
  /**
   * When this time is over, it returns how many it has found so far, with `exact: false`. While it has found none, it goes
   * on for up to ten times as long. @default no limit
   */
  within?: Duration
}

/** In this order, as an event that fails meanwhile may become a dead letter. */
const STATUSES: readonly FailureStatus[] = ['failed', 'dead_letter']

/** What `outbox.failures` offers. */
export interface Failures extends Pick<FailureDesk, 'groups' | 'count' | 'retry' | 'discard'> {}

export class FailureDesk {
  readonly #parts: FailureParts

  constructor(parts: FailureParts) {
    this.#parts = parts
  }

  /**
   * Returns failures in groups, the largest first: those with the same status, type, topic and error, apart from numbers,
   * ids, quoted texts and the like. Looks at the newest 10,000 of each status.
   */
  async groups(listing: FailureGroupListing = {}): Promise<FailureGroup[]> {
    rejectUnknown('failures.groups()', listing, ['limit'])
    const { limit = 100 } = listing
    return await this.#parts.store.failures.groups(requireCount('limit', limit, 1_000))
  }

  /**
   * Returns how many failures are selected, counted up to 100,000. To change no more than were counted, pass the same
   * `failedBefore` to count() and to the change.
   */
  async count(selection: FailureSelection, counting: FailureCounting = {}): Promise<Count> {
    rejectUnknown('failures.count()', counting, ['within'])
    const { status, ...filter } = selectionOf('failures.count()', selection)
    const { within } = counting
    const limitMs = within === undefined ? Infinity : requireDuration('within', within, 1)
    const begunAt = performance.now()
    let total = 0
    for (const one of status === undefined ? STATUSES : [status]) {
      for (let afterSeq: number | null = 0; afterSeq !== null; ) {
        const isLate = performance.now() - begunAt > (total > 0 ? limitMs : 10 * limitMs)
        if (total > COUNTED || isLate) return { count: total, exact: false }
        const page = { limit: filter.error === undefined ? PAGE : PAGE_BY_ERROR, afterSeq }
        const counted: FailuresChanged = await this.#count({ ...filter, status: one }, page)
        total += counted.count
        afterSeq = counted.lastSeq
      }
    }
    return { count: total, exact: true }
  }

  /**
   * Makes the selected failures due now: dead letters with all their attempts, resting events with those that they have
   * left. Events that are being tried right now are left alone. Returns how many were changed.
   */
  async retry(selection: FailureSelection, details: DoneBy = {}): Promise<number> {
    return await this.#change('retry', selection, details)
  }

  /** Deletes the selected failures for good, except those that are being tried right now. Returns how many. */
  async discard(selection: FailureSelection, details: DoneBy = {}): Promise<number> {
    return await this.#change('discard', selection, details)
  }

  #count(filter: FailuresOfKind, page: FailurePage): Promise<FailuresChanged> {
    return this.#parts.store.failures.count(filter, page)
  }

  async #change(
    act: 'retry' | 'discard',
    selection: FailureSelection,
    details: DoneBy,
  ): Promise<number> {
    const who = doneBy(`failures.${act}()`, details)
    const { status, ...filter } = selectionOf(`failures.${act}()`, selection)
    let count = 0
    for (const one of status === undefined ? STATUSES : [status]) {
      count += await changeFailures(this.#parts, act, { ...filter, status: one }, who)
    }
    return count
  }
}

function selectionOf(owner: string, selection: FailureSelection): FailureFilter {
  const given = withoutCounts(selection)
  const filter = requireSelection<FailureFilter>(owner, given, FILTERS, 'failures')
  const { status, failedSince, failedBefore, savedSince, savedBefore, ...fields } = filter
  if (status !== undefined) requireOneOf('status', status, STATUSES)
  checkFields(fields)
  requireDates({ failedSince, failedBefore, savedSince, savedBefore })
  return filter
}

/** A group as groups() returned it is a selection: what it counted is left out. */
function withoutCounts(selection: FailureSelection): FailureFilter | { all: true } {
  if (typeof selection !== 'object' || selection === null || !('example' in selection)) {
    return selection
  }
  const { status, type, topic, error } = selection
  return { status, type, topic, error }
}
