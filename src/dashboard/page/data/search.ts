// What a person means by the text in the search box: an id anywhere in it, or a filter such as `type:order.placed topic:orders 42`.
import { type EventFilter, NO_FILTER, STATUSES } from './event-filter.ts'

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i
const FIELDS: Record<string, 'type' | 'topic' | 'aggregateId'> = {
  type: 'type',
  topic: 'topic',
  aggregate: 'aggregateId',
}

export type Search =
  | { readonly kind: 'id'; readonly id: string }
  | { readonly kind: 'filter'; readonly filter: EventFilter }

export function readSearch(text: string): Search {
  const id = UUID.exec(text)?.[0]
  if (id && !/\b(type|topic|aggregate|status):\S/.test(text))
    return { kind: 'id', id: id.toLowerCase() }
  return { kind: 'filter', filter: text.trim().split(/\s+/).reduce(addWord, NO_FILTER) }
}

/** A word without a field is an aggregate: its id, or its type and id as `order/42`. */
function addWord(filter: EventFilter, word: string): EventFilter {
  if (word === '') return filter
  const [, field = '', rest = ''] = /^(\w+):(.+)$/.exec(word) ?? []
  if (field === 'status') {
    const named = rest.replace(/^dead$/, 'dead_letter')
    return { ...filter, status: STATUSES.filter((status) => status === named) }
  }
  const name = FIELDS[field]
  const value = name ? rest : word
  if (name && name !== 'aggregateId') return { ...filter, [name]: value }
  const [, aggregateType, aggregateId] = /^([^/]+)\/(.+)$/.exec(value) ?? [null, null, value]
  return { ...filter, ...(aggregateType && { aggregateType }), aggregateId }
}
