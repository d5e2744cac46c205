// Find events: the filter is the address, so a link shows the same list to another person. Ticks are not part of it.
import { useState } from 'preact/hooks'
import { discard, moveTo, retry } from '../data/acts.ts'
import { databaseNow } from '../data/clock.ts'
import {
  type EventFilter,
  formatFilter,
  parseFilter,
  topicToMove,
  toSelection,
} from '../data/event-filter.ts'
import { useEventList } from '../data/event-list.ts'
import { exactTime, number, shortTime } from '../data/format.ts'
import { linkTo, replaceAddress } from '../data/route.ts'
import { useSession } from '../data/session.ts'
import { Failed, Loading, Notice } from '../parts/notice.tsx'
import { ViewHead } from '../parts/panel.tsx'
import { canBeTicked, EventTable } from './event-table.tsx'
import { FilterForm } from './filter-form.tsx'
import { TickedBar } from './ticked-bar.tsx'

export function EventsView({ query }: { query: string }) {
  const filter = parseFilter(query)
  const list = useEventList(filter)
  const [isOpen, setOpen] = useState(false)
  const { mayAct } = useSession()
  const [ticked, setTicked] = useTicked(query)
  // An event that went out meanwhile is a failure no more.
  const chosen = list.events.filter((event) => ticked.has(event.id) && canBeTicked(event))
  const isEmpty = list.events.length === 0
  return (
    <>
      <ViewHead title="Events">
        <BulkActions filter={filter} list={list} />
      </ViewHead>
      <FilterForm
        key={query}
        filter={filter}
        isOpen={isOpen}
        toggleOpen={() => setOpen(!isOpen)}
        events={list.events}
        change={(changed) => replaceAddress(linkTo('events', formatFilter(changed)))}
      />
      <div class="list-line">
        <p role="status">{describe(list)}</p>
        <button
          type="button"
          class={`button button-small ${list.hasChanged ? 'button-primary' : 'button-quiet'}`}
          onClick={list.reload}
        >
          {list.hasChanged ? 'Show what has changed' : 'Refresh'}
        </button>
      </div>
      <div class={`panel ${list.isLoading ? 'is-loading' : ''}`} aria-busy={list.isLoading}>
        {!isEmpty ? (
          <EventTable events={list.events} {...(mayAct && { ticked, tick: setTicked })} />
        ) : list.error ? (
          <Failed error={list.error} retry={list.reload} />
        ) : list.isLoading ? (
          <Loading what="events" />
        ) : (
          <Notice icon="search" title="No event found">
            {list.lookedUntil
              ? 'None so far, but there are older events to search.'
              : formatFilter({ ...filter, order: 'newest' })
                ? 'No event matches this filter.'
                : 'An event appears here as soon as the transaction that emits it commits.'}
          </Notice>
        )}
      </div>
      {chosen.length > 0 && (
        <TickedBar
          ids={chosen.map(({ id }) => id)}
          untick={() => setTicked(NONE)}
          reload={list.reload}
        />
      )}
      <Further list={list} />
    </>
  )
}

type List = ReturnType<typeof useEventList>

const NONE: ReadonlySet<string> = new Set()

/** The ids of events. Another filter unticks them. */
function useTicked(query: string) {
  const [ticked, setTicked] = useState({ query, ids: NONE })
  const ids = ticked.query === query ? ticked.ids : NONE
  return [ids, (changed: ReadonlySet<string>) => setTicked({ query, ids: changed })] as const
}

function Further({ list }: { list: List }) {
  if (!list.hasMore) return null
  return (
    <div class="further">
      {list.lookedUntil && (
        <p title={exactTime(list.lookedUntil)}>
          Looked back to {shortTime(list.lookedUntil)}. There are older events.
        </p>
      )}
      <button
        type="button"
        class="button"
        disabled={list.isLoading}
        onClick={() => void list.more()}
      >
        {list.lookedUntil ? 'Look further back' : 'Show more'}
      </button>
    </div>
  )
}

/** On the failures among what the filter matches, on all pages. */
function BulkActions({ filter, list }: { filter: EventFilter; list: List }) {
  const { mayAct, ask } = useSession()
  const { events, hasMore, isLoading, reload } = list
  // All that matches is on the list, and no failure is.
  const isPointless = !hasMore && !isLoading && !events.some(canBeTicked)
  const topic = topicToMove(filter)
  // The span begins when the button is pressed; the server counts the same events that it then changes.
  const run = (make: typeof retry) => {
    const selection = toSelection(filter, databaseNow())
    if (!selection) return
    const where = selection.all ? 'all failures' : 'what matches the filter'
    void ask(make(selection, where)).then((isDone) => isDone && reload())
  }
  const move = topic !== null && (
    <button
      type="button"
      class="button button-quiet"
      onClick={() => void ask(moveTo(topic)).then((isDone) => isDone && reload())}
    >
      Move to another topic…
    </button>
  )
  if (!mayAct) return null
  if (!toSelection(filter, 0)) return <>{move}</>
  return (
    <>
      <button type="button" class="button" disabled={isPointless} onClick={() => run(retry)}>
        Retry matching…
      </button>
      <button
        type="button"
        class="button button-quiet"
        disabled={isPointless}
        onClick={() => run(discard)}
      >
        Discard matching…
      </button>
      {move}
    </>
  )
}

function describe({ events, isLoading, hasMore }: List): string {
  if (isLoading) return 'Looking…'
  const noun = events.length === 1 ? 'event' : 'events'
  return `${hasMore && events.length > 0 ? 'The first ' : ''}${number(events.length)} ${noun}`
}
