// Dead letters: events that were given up, and what a person may do about them. A retried one keeps its id
// and its place in the order, so the events of its aggregate that are still waiting go after it.
import { show } from './duration.ts'
import { OutboxOptionsError } from './errors.ts'
import type { Logger } from './logger.ts'
import type {
  DeadLetter,
  DeadLetterFilter,
  DeadLetterPage,
  DeadLettersChanged,
  Store,
} from './store/store.ts'
import { rejectUnknown, requireCount } from './validate.ts'

type DeadLetterStore = Pick<
  Store<never>,
  'listDeadLetters' | 'retryDeadLetters' | 'discardDeadLetters' | 'countDeadLetters'
>

/** Which ones; `{ all: true }` for every one there is. */
export type DeadLetterSelection = DeadLetterFilter | { all: true }

export interface DeadLetterListing extends DeadLetterFilter {
  /** @default 100 */
  limit?: number
  /** The `seq` of the last one seen, for the next page. */
  afterSeq?: number
}

const FILTERS = ['id', 'type', 'aggregateType', 'aggregateId', 'diedSince', 'diedBefore']
const PAGE = 1_000
/** In the check; whoever wants to know more exactly asks stats(). */
const COUNTED = 10_000
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

export class DeadLetters {
  readonly #store: DeadLetterStore
  readonly #logger: Logger
  readonly #wakePoller: () => void

  /** @internal Use outbox.deadLetters. */
  constructor(store: DeadLetterStore, logger: Logger, wakePoller: () => void) {
    this.#store = store
    this.#logger = logger
    this.#wakePoller = wakePoller
  }

  /** The oldest first, each with its payload and the error it died of. */
  async list(listing: DeadLetterListing = {}): Promise<DeadLetter[]> {
    const { limit = 100, afterSeq = 0, ...filter } = listing
    rejectUnknown('deadLetters.list()', listing, [...FILTERS, 'limit', 'afterSeq'])
    requireCount('limit', limit, 10_000)
    requireCount('afterSeq', afterSeq, Number.MAX_SAFE_INTEGER, 0)
    return await this.#store.listDeadLetters(checkFilter(filter), { limit, afterSeq })
  }

  /** Gives them all their attempts back; answers how many there were. */
  async retry(selection: DeadLetterSelection): Promise<number> {
    const filter = requireSelection('deadLetters.retry()', selection)
    const count = await inPages((page) => this.#store.retryDeadLetters(filter, page))
    if (count > 0) this.#logger.info({ count }, 'dead letters reset for retry')
    this.#wakePoller()
    return count
  }

  /** Deletes them for good; answers how many there were. */
  async discard(selection: DeadLetterSelection): Promise<number> {
    const filter = requireSelection('deadLetters.discard()', selection)
    const count = await inPages((page) => this.#store.discardDeadLetters(filter, page))
    if (count > 0) this.#logger.info({ count }, 'dead letters discarded')
    this.#wakePoller()
    return count
  }

  /** @internal Warns while there are any. */
  async check(): Promise<void> {
    const byType = await this.#store.countDeadLetters(COUNTED)
    const count = Object.values(byType).reduce((sum, ofType) => sum + ofType, 0)
    if (count === 0) return
    this.#logger.warn(
      { count, byType },
      'dead letters need a person: see outbox.deadLetters.list(), then retry() or discard()',
    )
  }
}

// From the oldest to the newest: one that dies again meanwhile is not met twice.
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

// Everything is never meant by accident: an empty filter is most often a variable that was undefined.
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
    const remedy = `say which ones (${FILTERS.join(', ')}), or { all: true } for every one`
    throw new OutboxOptionsError(`${owner} takes a filter: ${remedy}`)
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
