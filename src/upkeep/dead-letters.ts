// Dead letters: events that the outbox gave up on, and what a person can do about them. A retried dead letter keeps its
// id and its place in the order, so waiting events of its lane go out after it.
import { show } from '../checks/duration.ts'
import { OutboxOptionsError } from '../errors.ts'
import type { Bell } from '../runtime/bell.ts'
import type { Logger } from '../runtime/logger.ts'
import type {
  DeadLetter,
  DeadLetterFilter,
  DeadLetterPage,
  DeadLettersChanged,
  Store,
} from '../store/outbox/outbox-store.ts'
import { rejectUnknown, requireCount } from '../checks/checks.ts'

type DeadLetterStore = Pick<
  Store<never>,
  'listDeadLetters' | 'retryDeadLetters' | 'discardDeadLetters' | 'countDeadLetters'
>

/** Which dead letters to change; `{ all: true }` selects every one. */
export type DeadLetterSelection = DeadLetterFilter | { all: true }

export interface DeadLetterListing extends DeadLetterFilter {
  /** @default 100 */
  limit?: number
  /** The `seq` of the last dead letter on the previous page. */
  afterSeq?: number
}

const FILTERS = ['id', 'type', 'aggregateType', 'aggregateId', 'diedSince', 'diedBefore']
const PAGE = 1_000
/** The check counts no further. */
const COUNTED = 10_000
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

export interface DeadLettersParts {
  readonly store: DeadLetterStore
  readonly logger: Logger
  /** Rung when dead letters may be sent again, or no longer hold others back. */
  readonly bell: Bell
}

/** What `outbox.deadLetters` offers. */
export interface DeadLetters extends Pick<DeadLetterDesk, 'list' | 'retry' | 'discard'> {}

export class DeadLetterDesk {
  readonly #store: DeadLetterStore
  readonly #logger: Logger
  readonly #bell: Bell

  constructor({ store, logger, bell }: DeadLettersParts) {
    this.#store = store
    this.#logger = logger
    this.#bell = bell
  }

  /** Returns dead letters, oldest first, each with its payload and its last error. */
  async list(listing: DeadLetterListing = {}): Promise<DeadLetter[]> {
    const { limit = 100, afterSeq = 0, ...filter } = listing
    rejectUnknown('deadLetters.list()', listing, [...FILTERS, 'limit', 'afterSeq'])
    requireCount('limit', limit, 10_000)
    requireCount('afterSeq', afterSeq, Number.MAX_SAFE_INTEGER, 0)
    return await this.#store.listDeadLetters(checkFilter(filter), { limit, afterSeq })
  }

  /** Makes the selected dead letters pending again, with all their attempts. Returns how many there were. */
  async retry(selection: DeadLetterSelection): Promise<number> {
    const filter = requireSelection('deadLetters.retry()', selection)
    const count = await inPages((page) => this.#store.retryDeadLetters(filter, page))
    if (count > 0) this.#logger.info({ count }, 'dead letters reset for retry')
    this.#bell.ring()
    return count
  }

  /** Deletes the selected dead letters for good. Returns how many there were. */
  async discard(selection: DeadLetterSelection): Promise<number> {
    const filter = requireSelection('deadLetters.discard()', selection)
    const count = await inPages((page) => this.#store.discardDeadLetters(filter, page))
    if (count > 0) this.#logger.info({ count }, 'dead letters discarded')
    this.#bell.ring()
    return count
  }

  /** Logs a warning while there are dead letters. */
  async check(): Promise<void> {
    const byType = await this.#store.countDeadLetters(COUNTED)
    const count = Object.values(byType).reduce((sum, ofType) => sum + ofType, 0)
    if (count === 0) return
    this.#logger.warn(
      { count, byType },
      'there are dead letters; see outbox.deadLetters.list(), then retry() or discard() them',
    )
  }
}

// From the oldest to the newest, so that an event that dies again meanwhile is not changed twice.
async function inPages(
  change: (page: DeadLetterPage) => Promise<DeadLettersChanged>,
): Promise<number> {
  let total = 0
  for (let afterSeq: number | null = 0; afterSeq !== null; ) {
    const { count, lastSeq } = await change({ limit: PAGE, afterSeq })
    total += count
    afterSeq = lastSeq
  }
  return total
}

// An empty filter must not select everything: it is most often a variable that was undefined.
function requireSelection(owner: string, selection: DeadLetterSelection): DeadLetterFilter {
  rejectUnknown(owner, selection, [...FILTERS, 'all'])
  const { all, ...filter } = selection as DeadLetterFilter & { all?: unknown }
  const given = Object.values(filter).some((value) => value !== undefined)
  if (all !== undefined && all !== true) {
    throw new OutboxOptionsError(`${owner}: all must be true, got ${show(all)}`)
  }
  if (given && all === true) {
    throw new OutboxOptionsError(
      `${owner}: all: true and a filter contradict each other; remove one`,
    )
  }
  if (!given && all !== true) {
    const remedy = `select by ${FILTERS.join(', ')}, or pass { all: true } for all dead letters`
    throw new OutboxOptionsError(`${owner} needs a filter: ${remedy}`)
  }
  return checkFilter(filter)
}

function checkFilter(filter: DeadLetterFilter): DeadLetterFilter {
  const { id, diedSince, diedBefore, ...texts } = filter
  for (const [name, value] of Object.entries(texts)) requireText(name, value)
  for (const one of id === undefined ? [] : [id].flat()) {
    if (typeof one !== 'string' || !UUID.test(one)) {
      throw new OutboxOptionsError(`id must be the id of an event, a UUID, got ${show(one)}`)
    }
  }
  for (const [name, value] of Object.entries({ diedSince, diedBefore })) requireDate(name, value)
  return filter
}

function requireText(name: string, value: unknown): void {
  if (value === undefined || typeof value === 'string') return
  throw new OutboxOptionsError(`${name} must be a string, got ${show(value)}`)
}

function requireDate(name: string, value: unknown): void {
  if (value === undefined || (value instanceof Date && !Number.isNaN(value.getTime()))) return
  throw new OutboxOptionsError(`${name} must be a valid Date, got ${show(value)}`)
}
