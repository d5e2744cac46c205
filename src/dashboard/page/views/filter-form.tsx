// The fields of the filter. Each change goes into the address at once; texts when the field is left or Enter is pressed.
import type { EventShown } from '../../api.ts'
import { type EventFilter, isSpan, NO_FILTER, STATUSES, withText } from '../data/event-filter.ts'
import { knownValues, useSession } from '../data/session.ts'
import { STATUS_WORDS } from '../parts/badge.tsx'
import { Icon } from '../parts/icon.tsx'
import { ActiveFilters } from './active-filters.tsx'

interface Props {
  readonly filter: EventFilter
  readonly change: (filter: EventFilter) => void
}

interface FormProps extends Props {
  /** Whether a phone shows the fields too. */
  readonly isOpen: boolean
  readonly toggleOpen: () => void
  /** What the list shows. */
  readonly events: readonly EventShown[]
}

const TEXTS = [
  ['type', 'Type', 'order.placed'],
  ['topic', 'Topic', 'orders'],
  ['aggregateType', 'Aggregate type', 'order'],
  ['aggregateId', 'Aggregate id', '42'],
  ['error', 'Error', 'timeout after <number> ms'],
] as const

export function FilterForm({ filter, change, isOpen, toggleOpen, events }: FormProps) {
  const { overview } = useSession()
  const known: { [name in (typeof TEXTS)[number][0]]?: string[] } = knownValues(
    overview.data,
    events,
  )
  const toggle = (status: (typeof STATUSES)[number]) =>
    change({
      ...filter,
      status: filter.status.includes(status)
        ? filter.status.filter((one) => one !== status)
        : [...filter.status, status],
    })
  return (
    <form
      class={`filter panel ${isOpen ? 'is-open' : ''}`}
      role="search"
      aria-label="Filter of events"
      onSubmit={(event) => event.preventDefault()}
    >
      <fieldset class="chips">
        <legend class="visually-hidden">Status</legend>
        {STATUSES.map((status) => (
          <button
            key={status}
            type="button"
            class={`chip badge-${status}`}
            aria-pressed={filter.status.includes(status)}
            onClick={() => toggle(status)}
          >
            <Icon name={status} />
            {STATUS_WORDS[status]}
          </button>
        ))}
      </fieldset>
      <div class="filter-more">
        <button
          type="button"
          class="chip filter-toggle"
          aria-expanded={isOpen}
          onClick={toggleOpen}
        >
          {isOpen ? 'Fewer filters' : 'More filters'}
        </button>
        <ActiveFilters filter={filter} change={change} />
      </div>
      {TEXTS.map(([name, label, example]) => (
        <label key={name} class="field">
          {label}
          <input
            name={name}
            defaultValue={filter[name] ?? ''}
            placeholder={example}
            list={known[name] && `known-${name}`}
            autocapitalize="none"
            spellcheck={false}
            onChange={({ currentTarget }) =>
              change(withText(filter, name, currentTarget.value.trim()))
            }
          />
        </label>
      ))}
      {Object.entries(known).map(([name, values]) => (
        <datalist key={name} id={`known-${name}`}>
          {values.map((value) => (
            <option key={value} value={value} />
          ))}
        </datalist>
      ))}
      <SavedFields filter={filter} change={change} />
      <label class="field">
        Order
        <select
          value={filter.order}
          onChange={({ currentTarget }) =>
            change({ ...filter, order: currentTarget.value === 'oldest' ? 'oldest' : 'newest' })
          }
        >
          <option value="newest">newest first</option>
          <option value="oldest">oldest first</option>
        </select>
      </label>
      <button
        type="button"
        class="button button-quiet filter-clear"
        onClick={() => change(NO_FILTER)}
      >
        Clear
      </button>
    </form>
  )
}

/** A span that ends now, or two times. */
function SavedFields({ filter, change }: Props) {
  const { savedSince, savedBefore } = filter
  const isExact = savedBefore !== undefined || (savedSince !== undefined && !isSpan(savedSince))
  const choice = isExact ? 'exact' : (savedSince ?? '')
  const choose = (value: string) => {
    const anyTime = withText(withText(filter, 'savedBefore', ''), 'savedSince', '')
    const hourAgo = new Date(Date.now() - 3_600_000).toISOString()
    change(value === '' ? anyTime : { ...anyTime, savedSince: value === 'exact' ? hourAgo : value })
  }
  return (
    <>
      <label class="field">
        Saved
        <select value={choice} onChange={({ currentTarget }) => choose(currentTarget.value)}>
          <option value="">at any time</option>
          <option value="15m">in the last 15 minutes</option>
          <option value="1h">in the last hour</option>
          <option value="24h">in the last day</option>
          <option value="7d">in the last 7 days</option>
          <option value="exact">between…</option>
        </select>
      </label>
      {isExact &&
        (['savedSince', 'savedBefore'] as const).map((name) => (
          <label key={name} class="field">
            {name === 'savedSince' ? 'Saved since' : 'Saved before'}
            <input
              type="datetime-local"
              step="1"
              name={name}
              defaultValue={localText(filter[name])}
              onChange={({ currentTarget: { value } }) =>
                change(withText(filter, name, value && new Date(value).toISOString()))
              }
            />
          </label>
        ))}
    </>
  )
}

/** A time in the reader's zone, as the field wants it. */
function localText(at: string | undefined): string {
  const time = at === undefined ? Number.NaN : Date.parse(at)
  if (Number.isNaN(time)) return ''
  const ahead = new Date(time).getTimezoneOffset() * 60_000
  return new Date(time - ahead).toISOString().slice(0, 19)
}
