// Which events the list shows. The filter lives in the address, under the names of the API, so that a link can be shared.
import type { EventQuery, FailureName, Selection, StatusName } from '../../api.ts'

export const STATUSES: readonly StatusName[] = [
  'scheduled',
  'pending',
  'failed',
  'published',
  'dead_letter',
]
const SPANS = { '15m': 15, '1h': 60, '24h': 24 * 60, '7d': 7 * 24 * 60 } as const
type Span = keyof typeof SPANS

const TEXTS = ['type', 'topic', 'aggregateType', 'aggregateId', 'error'] as const
const NAMES = [...TEXTS, 'savedSince', 'savedBefore'] as const
type Name = (typeof NAMES)[number]

/** `savedSince` is a time, or a span such as `1h` that ends now. */
export type EventFilter = { readonly [name in Name]?: string } & {
  readonly status: readonly StatusName[]
  readonly order: 'newest' | 'oldest'
}

export const NO_FILTER: EventFilter = { status: [], order: 'newest' }

export function parseFilter(query: string): EventFilter {
  const params = new URLSearchParams(query)
  const wanted = params.get('status')?.split(',') ?? []
  return {
    ...Object.fromEntries(
      NAMES.flatMap((name) => (params.get(name) ? [[name, params.get(name)]] : [])),
    ),
    status: STATUSES.filter((status) => wanted.includes(status)),
    order: params.get('order') === 'oldest' ? 'oldest' : 'newest',
  }
}

/** The filter as part of an address, without defaults. */
export function formatFilter(filter: EventFilter): string {
  const params = new URLSearchParams()
  if (filter.status.length > 0) params.set('status', filter.status.join(','))
  for (const name of NAMES) if (filter[name]) params.set(name, filter[name])
  if (filter.order === 'oldest') params.set('order', 'oldest')
  return params.toString().replaceAll('%2C', ',').replaceAll('%3A', ':')
}

/** What the server is asked; a span becomes the time at which it began. */
export function toQuery(filter: EventFilter, now: number): EventQuery {
  const { status, order } = filter
  return {
    ...restrictionsOf(filter, now),
    ...(status.length > 0 && { status: status.join(',') }),
    order,
  }
}

/** The failures among the events of the filter; null if it selects none. */
export function toSelection(filter: EventFilter, now: number): Selection | null {
  const failures = filter.status.filter(
    (status): status is FailureName => status === 'failed' || status === 'dead_letter',
  )
  if (filter.status.length > 0 && failures.length === 0) return null
  const selection = {
    ...restrictionsOf(filter, now),
    ...(failures.length === 1 && { status: failures[0]! }),
  }
  return Object.keys(selection).length > 0 ? selection : { all: true }
}

const UNSENT: readonly StatusName[] = ['pending', 'failed']

/** The topic whose unsent events the list shows, all of them: a move knows nothing but the topic. Otherwise null. */
export function topicToMove(filter: EventFilter): string | null {
  const { status, topic } = filter
  const others = NAMES.filter((name) => name !== 'topic' && filter[name])
  const hasUnsent = status.length === 0 || UNSENT.every((one) => status.includes(one))
  return topic !== undefined && others.length === 0 && hasUnsent ? topic : null
}

/** An empty text takes it out. */
export function withText(filter: EventFilter, name: keyof EventFilter, text: string): EventFilter {
  const { [name]: _, ...rest } = filter
  return (text ? { ...rest, [name]: text } : rest) as EventFilter
}

export function isSpan(text: string | undefined): text is Span {
  return text !== undefined && Object.hasOwn(SPANS, text)
}

function restrictionsOf(filter: EventFilter, now: number): { [name in Name]?: string } {
  const given = NAMES.flatMap((name) => (filter[name] ? [[name, filter[name]]] : []))
  const { savedSince } = filter
  return {
    ...Object.fromEntries(given),
    ...(isSpan(savedSince) && { savedSince: startOf(savedSince, now) }),
  }
}

function startOf(span: Span, now: number): string {
  return new Date(now - SPANS[span] * 60_000).toISOString()
}
