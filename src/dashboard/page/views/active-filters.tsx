// The active filter without the status, one chip each, for a phone, where the fields are folded away. A press removes it.
import { type EventFilter, isSpan, withText } from '../data/event-filter.ts'
import { shortTime } from '../data/format.ts'
import { Icon } from '../parts/icon.tsx'

interface Props {
  readonly filter: EventFilter
  readonly change: (filter: EventFilter) => void
}

const NAMES = {
  type: 'Type',
  topic: 'Topic',
  aggregateType: 'Aggregate type',
  aggregateId: 'Aggregate id',
  error: 'Error',
  savedSince: 'Saved since',
  savedBefore: 'Saved before',
} as const

export function ActiveFilters({ filter, change }: Props) {
  const given = (Object.keys(NAMES) as (keyof typeof NAMES)[]).filter((name) => filter[name])
  if (given.length === 0 && filter.order === 'newest') return null
  return (
    <ul class="active-filters" aria-label="Active filters">
      {given.map((name) => (
        <Chip
          key={name}
          text={textOf(name, filter[name]!)}
          remove={() => change(withText(filter, name, ''))}
        />
      ))}
      {filter.order === 'oldest' && (
        <Chip text="Oldest first" remove={() => change({ ...filter, order: 'newest' })} />
      )}
    </ul>
  )
}

function Chip({ text, remove }: { text: string; remove: () => void }) {
  return (
    <li>
      <button type="button" class="chip" aria-label={`Remove the filter ${text}`} onClick={remove}>
        <span>{text}</span>
        <Icon name="remove" />
      </button>
    </li>
  )
}

function textOf(name: keyof typeof NAMES, value: string): string {
  if (name === 'savedSince' && isSpan(value)) return `Saved in the last ${value}`
  if (name === 'savedSince' || name === 'savedBefore') return `${NAMES[name]} ${shortTime(value)}`
  return `${NAMES[name]}: ${value}`
}
