// Dead letters: events that the outbox gave up on, and what a person can do about them. A retried dead letter keeps its
// id and its place in the order, so waiting events of its lane go out after it.
import { rejectUnknown, requireCount } from '../checks/checks.ts'
import { requireDates } from '../checks/filter-values.ts'
import { type DeadLetterFilter, ofDeadLetters } from '../store/outbox/failure-store.ts'
import type { DeadLetter, Store } from '../store/outbox/outbox-store.ts'
import {
  changeFailures,
  checkFields,
  FAILURE_FIELDS,
  type FailureParts,
  requireSelection,
} from './change-failures.ts'
import { type DoneBy, doneBy } from './done-by.ts'

/** Which dead letters to change; `{ all: true }` selects every one. */
export type DeadLetterSelection = DeadLetterFilter | { all: true }

export interface DeadLetterListing extends DeadLetterFilter {
  /** @default 100 */
  limit?: number
  /** The `seq` of the last dead letter on the previous page. */
  afterSeq?: number
}

const FILTERS = [...FAILURE_FIELDS, 'diedSince', 'diedBefore']
/** The check counts no further. */
const COUNTED = 10_000

export interface DeadLettersParts extends FailureParts {
  readonly store: Pick<Store<never>, 'listDeadLetters' | 'countDeadLetters' | 'failures'>
}

/** What `outbox.deadLetters` offers. */
export interface DeadLetters extends Pick<DeadLetterDesk, 'list' | 'retry' | 'discard'> {}

export class DeadLetterDesk {
  readonly #parts: DeadLettersParts

  constructor(parts: DeadLettersParts) {
    this.#parts = parts
  }

  /** Returns dead letters, oldest first, each with its payload and its last error. */
  async list(listing: DeadLetterListing = {}): Promise<DeadLetter[]> {
    const { limit = 100, afterSeq = 0, ...filter } = listing
    rejectUnknown('deadLetters.list()', listing, [...FILTERS, 'limit', 'afterSeq'])
    requireCount('limit', limit, 10_000)
    requireCount('afterSeq', afterSeq, Number.MAX_SAFE_INTEGER, 0)
    return await this.#parts.store.listDeadLetters(checkFilter(filter), { limit, afterSeq })
  }

  /** Makes the selected dead letters pending again, with all their attempts. Returns how many there were. */
  async retry(selection: DeadLetterSelection, details: DoneBy = {}): Promise<number> {
    return await this.#change('retry', selection, details)
  }

  /** Deletes the selected dead letters for good. Returns how many there were. */
  async discard(selection: DeadLetterSelection, details: DoneBy = {}): Promise<number> {
    return await this.#change('discard', selection, details)
  }

  async #change(
    act: 'retry' | 'discard',
    selection: DeadLetterSelection,
    details: DoneBy,
  ): Promise<number> {
    const who = doneBy(`deadLetters.${act}()`, details)
    const filter = requireSelection(`deadLetters.${act}()`, selection, FILTERS, 'dead letters')
    return await changeFailures(this.#parts, act, ofDeadLetters(checkFilter(filter)), who)
  }

  /** Logs a warning while there are dead letters. */
  async check(): Promise<void> {
    const { store, logger } = this.#parts
    const byType = await store.countDeadLetters(COUNTED)
    const count = Object.values(byType).reduce((sum, ofType) => sum + ofType, 0)
    if (count === 0) return
    logger.warn(
      { count, byType },
      'there are dead letters; see outbox.deadLetters.list(), then retry() or discard() them',
    )
  }
}

function checkFilter(filter: DeadLetterFilter): DeadLetterFilter {
  const { diedSince, diedBefore, ...fields } = filter
  checkFields(fields)
  requireDates({ diedSince, diedBefore })
  return filter
}
