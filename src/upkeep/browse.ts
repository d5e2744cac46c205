// A look at the events in the table, for people: page by page without payloads, or one event with everything. Only reads,
// and needs a store and no publisher.
import { rejectUnknown, requireCount, requireOneOf } from '../checks/checks.ts'
import { requireDates, requireIds, requireTexts } from '../checks/filter-values.ts'
import { OutboxOptionsError } from '../errors.ts'
import { EVENT_STATUSES } from '../event/event.ts'
import type {
  BrowseStore,
  EventDetail,
  EventFilter,
  EventPage,
} from '../store/outbox/browse-store.ts'
import { EventTail } from './tail.ts'

export interface EventListing extends EventFilter {
  /** At most 1,000. @default 100 */
  limit?: number
  /** `next` of the page before, or the id of an event: only those after it, in the given order. */
  after?: string | null
  /** By id, which begins with the time of the event. @default 'newest' */
  order?: 'newest' | 'oldest'
}

const TEXTS = ['type', 'topic', 'aggregateType', 'aggregateId'] as const
const FILTERS = ['id', 'status', ...TEXTS, 'error', 'savedSince', 'savedBefore']
const TAIL_FILTERS = ['status', ...TEXTS]

/** Which events to follow. */
export interface TailFilter
  extends Omit<EventFilter, 'id' | 'error' | 'savedSince' | 'savedBefore'> {}

/** What `browse.tail()` returns. */
export interface Tail extends Pick<EventTail, 'begin' | 'next'> {}

/** What `outbox.browse` offers. */
export interface Browse extends Pick<EventBrowser, 'list' | 'show' | 'tail'> {}

export class EventBrowser {
  readonly #store: BrowseStore

  constructor({ store }: { readonly store: { readonly browse: BrowseStore } }) {
    this.#store = store.browse
  }

  /**
   * Returns one page of events, without payloads and headers. A page looks at no more than 50,000 rows, so it may hold fewer
   * events than asked for although there are more; `next` is null at the end only.
   */
  async list(listing: EventListing = {}): Promise<EventPage> {
    rejectUnknown('browse.list()', listing, [...FILTERS, 'limit', 'after', 'order'])
    const { limit = 100, after = null, order = 'newest', ...filter } = listing
    requireCount('limit', limit, 1_000)
    requireIds('after', after ?? undefined)
    requireOneOf('order', order, ['newest', 'oldest'])
    return await this.#store.list(checkFilter(filter), { limit, after, order })
  }

  /** Returns one event with its payload, its headers and what it waits for, or null if there is no such event. */
  async show(id: string): Promise<EventDetail | null> {
    if (typeof id !== 'string') requireIds('id', [id])
    requireIds('id', id)
    return await this.#store.show(id)
  }

  /**
   * Follows the table from now on: each call of `next()` returns what came, or changed its status, since the last one. Call
   * it once a second or so. Changes of events that were emitted more than ten seconds ago are not seen.
   */
  tail(filter: TailFilter = {}): Tail {
    rejectUnknown('browse.tail()', filter, TAIL_FILTERS)
    return new EventTail(this.#store, checkFilter(filter))
  }
}

function checkFilter(filter: EventFilter): EventFilter {
  const { id, status, savedSince, savedBefore, ...texts } = filter
  requireIds('id', id)
  requireTexts(texts)
  requireDates({ savedSince, savedBefore })
  const statuses = status === undefined ? EVENT_STATUSES : [status].flat()
  if (statuses.length === 0) {
    throw new OutboxOptionsError(
      `status must name at least one of ${EVENT_STATUSES.join(', ')}, got []`,
    )
  }
  for (const one of statuses) requireOneOf('status', one, EVENT_STATUSES)
  return filter
}
