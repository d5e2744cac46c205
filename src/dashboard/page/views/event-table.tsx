// Events, one a line. What an event waits for stands beside its status; the whole of it is one click away. Failures can be ticked;
// Shift ticks all from the last one to this.
import { useRef } from 'preact/hooks'
import type { EventShown } from '../../api.ts'
import { databaseNow } from '../data/clock.ts'
import { duration, number } from '../data/format.ts'
import { linkTo, linkToEvent } from '../data/route.ts'
import { StatusBadge } from '../parts/badge.tsx'
import { CopyButton } from '../parts/copy.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Time } from '../parts/time.tsx'

const COLUMNS: readonly Column<EventShown>[] = [
  {
    name: 'Status',
    cell: ({ status, isPaused }) => <StatusBadge status={status} isPaused={isPaused} />,
  },
  {
    name: 'Event',
    kind: 'main',
    cell: (event) => (
      <>
        <a class="event-type" href={linkToEvent(event.id)}>
          {event.type}
        </a>
        {event.error && event.status !== 'published' && <p class="row-error">{event.error}</p>}
      </>
    ),
  },
  {
    name: 'Aggregate',
    cell: ({ aggregateType, aggregateId }) => (
      <span class="clipped" title={`${aggregateType}/${aggregateId}`}>
        {aggregateType}/{aggregateId}
      </span>
    ),
  },
  { name: 'Topic', isMinor: true, cell: ({ topic }) => <span class="clipped">{topic}</span> },
  {
    name: 'Id',
    isMinor: true,
    cell: ({ id }) => (
      <span class="copyable" title={id}>
        <code>…{id.slice(-6)}</code>
        <CopyButton text={id} what={`the id ${id}`} />
      </span>
    ),
  },
  {
    name: 'Attempts',
    kind: 'number',
    isMinor: true,
    cell: ({ attempts, maxAttempts }) => `${number(attempts)}/${number(maxAttempts)}`,
  },
  { name: 'Saved', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { name: 'Outcome', isMinor: true, cell: outcomeOf },
]

interface Ticks {
  readonly ticked: ReadonlySet<string>
  readonly tick: (ticked: ReadonlySet<string>) => void
}

/** Without `ticked` there is nothing to tick. */
export function EventTable({
  events,
  ...ticks
}: { events: readonly EventShown[] } & Partial<Ticks>) {
  const { ticked, tick } = ticks
  const last = useRef<string | null>(null)
  const canTick = events.filter(canBeTicked)
  const isTickable = ticked !== undefined && tick !== undefined && canTick.length > 0
  const columns = isTickable ? [tickColumn({ ticked, tick }, canTick, last), ...COLUMNS] : COLUMNS
  return (
    <Table
      caption="Events"
      class={`table-events ${isTickable ? 'has-ticks' : ''}`}
      columns={columns}
      items={events}
      keyOf={({ id }) => id}
    />
  )
}

function outcomeOf(event: EventShown) {
  const { status, createdAt, availableAt, publishedAt, deliverAt } = event
  if (publishedAt)
    return `after ${duration(Date.parse(publishedAt) - Date.parse(deliverAt ?? createdAt))}`
  if (status === 'scheduled' && deliverAt) {
    return (
      <>
        due <Time at={deliverAt} />
      </>
    )
  }
  if (status === 'dead_letter') return 'waits for you'
  if (event.isPaused) return 'waits for the pause'
  if (event.isLeased) return 'being sent'
  if (Date.parse(availableAt) <= databaseNow()) {
    if (event.waitsFor === null) return 'due'
    return (
      <>
        waits for its <a href={linkTo('topics')}>{event.waitsFor}</a>, which is out of reach
      </>
    )
  }
  return (
    <>
      next try <Time at={availableAt} />
    </>
  )
}

/** Those that can be retried or discarded. */
export function canBeTicked({ status }: EventShown): boolean {
  return status === 'failed' || status === 'dead_letter'
}

function tickColumn(
  { ticked, tick }: Ticks,
  events: readonly EventShown[],
  last: { current: string | null },
): Column<EventShown> {
  const shown = events.map(({ id }) => id)
  const count = shown.filter((id) => ticked.has(id)).length
  const isAll = count === shown.length
  const toggle = (id: string, isRange: boolean) => {
    const from = isRange && last.current !== null ? shown.indexOf(last.current) : -1
    const to = shown.indexOf(id)
    const ids = from === -1 ? [id] : shown.slice(Math.min(from, to), Math.max(from, to) + 1)
    last.current = id
    const isOn = !ticked.has(id)
    const others = [...ticked].filter((one) => !ids.includes(one))
    tick(new Set(isOn ? [...others, ...ids] : others))
  }
  return {
    name: 'Tick',
    head: (
      <input
        type="checkbox"
        aria-label="All failures on this list"
        checked={isAll}
        ref={(box) => {
          if (box) box.indeterminate = count > 0 && !isAll
        }}
        onClick={() => tick(new Set(isAll ? [] : shown))}
      />
    ),
    cell: (event) =>
      canBeTicked(event) && (
        <input
          type="checkbox"
          aria-label={`${event.type} of ${event.aggregateType}/${event.aggregateId}`}
          checked={ticked.has(event.id)}
          onClick={({ shiftKey }) => toggle(event.id, shiftKey)}
        />
      ),
  }
}
