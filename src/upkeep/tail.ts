// Follows the events in the table as they come and change. Ids begin with the time of emit(), and a transaction may commit
// seconds after another one with later ids. So each look begins some seconds before the newest event, and what has been
// seen there is remembered. That also finds the outcomes of recent events. Only reads; nothing is kept in the database.
import type { EventStatus } from '../event/event.ts'
import type { BrowseStore, EventFilter, EventSummary } from '../store/outbox/browse-store.ts'

/** What commits, or changes, later than this after its emit() may be missed. */
const LOOKBACK_MS = 10_000

const PAGE = 1_000

/** A look reads no more pages than this. The next one goes on from there. */
const MOST_PAGES = 20

export class EventTail {
  readonly #store: BrowseStore
  readonly #filter: EventFilter
  #seen: ReadonlyMap<string, EventStatus> = new Map()
  #sinceMs: number | null = null

  constructor(store: BrowseStore, filter: EventFilter) {
    this.#store = store
    this.#filter = filter
  }

  /** Begins here: what is in the table by now is not new. next() does it if it has not been done. */
  async begin(): Promise<void> {
    const newest = await this.#store.list({}, { limit: 1, after: null, order: 'newest' })
    this.#sinceMs = startOfLook(newest.events)
    await this.#look()
  }

  /** What came or changed its status since the last call, by id. Returns at once, also if that is nothing. */
  async next(): Promise<EventSummary[]> {
    if (this.#sinceMs === null) await this.begin()
    const before = this.#seen
    const events = await this.#look()
    return events.filter(({ id, status }) => before.get(id) !== status)
  }

  async #look(): Promise<EventSummary[]> {
    const filter = { ...this.#filter, savedSince: new Date(this.#sinceMs!) }
    const events: EventSummary[] = []
    let after: string | null = null
    for (let pages = 0; pages === 0 || (after !== null && pages < MOST_PAGES); pages += 1) {
      const page = await this.#store.list(filter, { limit: PAGE, after, order: 'oldest' })
      events.push(...page.events)
      after = page.next
    }
    this.#seen = new Map(events.map(({ id, status }) => [id, status]))
    const sinceMs = after === null ? startOfLook(events) : timeOf(after)
    this.#sinceMs = Math.max(this.#sinceMs!, sinceMs)
    return events
  }
}

// By this machine's clock at the latest: an application whose clock is ahead must not hide the events of the others.
function startOfLook(events: readonly EventSummary[]): number {
  const newest = Math.max(0, ...events.slice(-1).map(({ id }) => timeOf(id)))
  return Math.max(0, Math.min(newest, Date.now()) - LOOKBACK_MS)
}

/** A UUIDv7 begins with its time in ms. */
function timeOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}
