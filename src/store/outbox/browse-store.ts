// What a person sees of the events in the table. Only SELECTs, for a role that may do nothing else.
import type { EventStatus } from '../../event/event.ts'

/** An event without its payload and headers. */
export interface EventSummary {
  readonly id: string
  readonly seq: number
  readonly status: EventStatus
  readonly type: string
  readonly aggregateType: string
  readonly aggregateId: string
  readonly topic: string
  readonly attempts: number
  readonly maxAttempts: number
  /** When it was saved. */
  readonly createdAt: Date
  /** When the fallback looks at it: at the end of its lease or its rest, or when it is no longer put off. */
  readonly availableAt: Date
  /** When it is due, or was, if it was scheduled. */
  readonly deliverAt: Date | null
  readonly publishedAt: Date | null
  /** Which process holds it, or held it last. */
  readonly workerId: string | null
  /** Whether a process holds it now. */
  readonly isLeased: boolean
  /** Whether it waits because its topic, or everything, is paused. */
  readonly isPaused: boolean
  /** The last error. */
  readonly error: string | null
}

/** Everything that is known about an event. */
export interface EventDetail extends EventSummary {
  readonly lane: number
  readonly occurredAt: Date
  readonly updatedAt: Date
  readonly lastAttemptAt: Date | null
  /** JSON text, exactly as it is sent. */
  readonly payload: string
  readonly headers: Readonly<Record<string, string>>
  /** The events of its lane that it has to wait for, the first ten; none if it is finished. */
  readonly behind: readonly EventAhead[]
}

export interface EventAhead {
  readonly id: string
  readonly status: EventStatus
  readonly seq: number
}

/** Selects the events that match every given field. */
export interface EventFilter {
  id?: string | readonly string[]
  status?: EventStatus | readonly EventStatus[]
  type?: string
  topic?: string
  aggregateType?: string
  aggregateId?: string
  /** The last error: its text, or what it boils down to, as `failures.groups()` returns it. */
  error?: string
  /** Emitted at this time or later, by the clock of the application: the time in the id. */
  savedSince?: Date
  /** Emitted before this time. */
  savedBefore?: Date
}

export interface EventPage {
  /** May be fewer than asked for, or none, although there are more: a page looks at a limited number of rows. */
  readonly events: readonly EventSummary[]
  /** Pass it as `after` for the next page; null at the end. */
  readonly next: string | null
}

export interface PageRequest {
  readonly limit: number
  /** Only events after the one with this id, in the given order; null for the first page. */
  readonly after: string | null
  /** By id. */
  readonly order: 'newest' | 'oldest'
}

export interface BrowseStore {
  list(filter: EventFilter, page: PageRequest): Promise<EventPage>
  /** null: there is no such event. */
  show(id: string): Promise<EventDetail | null>
}
