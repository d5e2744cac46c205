// Events, one a line. What an event waits for is shown beside its status; its details are one click away.
import type { EventShown } from '../../api.ts'
import { databaseNow } from '../data/clock.ts'
import { duration, number } from '../data/format.ts'
import { linkToEvent } from '../data/route.ts'
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

export function EventTable({ events }: { events: readonly EventShown[] }) {
  return (
    <Table
      caption="Events"
      class="table-events"
      columns={COLUMNS}
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
  if (Date.parse(availableAt) <= databaseNow()) return 'due'
  return (
    <>
      next try <Time at={availableAt} />
    </>
  )
}
