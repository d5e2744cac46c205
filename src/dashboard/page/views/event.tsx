// One event: its history, what it waits for, and what can be done about it.
import type { EventAnswer } from '../../api.ts'
import { discard, retry } from '../data/acts.ts'
import { ApiError, get } from '../data/client.ts'
import { databaseNow, learnTime } from '../data/clock.ts'
import { number } from '../data/format.ts'
import { usePoll } from '../data/poll.ts'
import { linkTo, linkToEvent } from '../data/route.ts'
import { useSession } from '../data/session.ts'
import { ONLY_WITH_HOLD, stepsOf } from '../data/timeline.ts'
import { StatusBadge } from '../parts/badge.tsx'
import { Copyable } from '../parts/copy.tsx'
import { Loaded, Notice } from '../parts/notice.tsx'
import { Panel, ViewHead } from '../parts/panel.tsx'
import { EventContentPanel } from './event-content.tsx'
import { Timeline } from './timeline.tsx'

export function EventView({ id }: { id: string }) {
  const polled = usePoll(`event ${id}`, async (signal) => {
    const event = await get<EventAnswer>(`events/${encodeURIComponent(id)}`, signal)
    learnTime(event.now)
    return event
  })
  if (polled.error instanceof ApiError && polled.error.status === 404) {
    return (
      <>
        <ViewHead title="No such event" />
        <div class="panel">
          <Notice icon="search" title={`No event has the id ${id}`}>
            It was never saved here, its transaction rolled back, or it is gone: published and past
            its retention, or discarded. <a href={linkTo('events')}>Look for events</a>
          </Notice>
        </div>
      </>
    )
  }
  return (
    <Loaded polled={polled} what="the event">
      {(event) => <Shown event={event} refresh={polled.refresh} />}
    </Loaded>
  )
}

function Shown({ event, refresh }: { event: EventAnswer; refresh: () => void }) {
  const { mayAct, ask } = useSession()
  const { id, status } = event
  const isFailure = status === 'failed' || status === 'dead_letter'
  const run = (make: typeof retry) =>
    void ask(make({ status: status as 'failed', id: [id] }, 'this event')).then(
      (isDone) => isDone && refresh(),
    )
  return (
    <>
      <p class="crumbs">
        <a href={linkTo('events')}>Events</a>
      </p>
      <ViewHead
        title={event.type}
        lead={
          <>
            <StatusBadge status={status} isPaused={event.isPaused} />
            <Copyable text={id} what="the id" />
          </>
        }
      >
        {mayAct && isFailure && (
          <>
            <button type="button" class="button button-primary" onClick={() => run(retry)}>
              Retry now…
            </button>
            <button type="button" class="button button-quiet" onClick={() => run(discard)}>
              Discard…
            </button>
          </>
        )}
      </ViewHead>
      <div class="columns">
        <Panel title="History">
          <Timeline steps={stepsOf(event, databaseNow())} />
          {event.behind.length > 0 && <WaitsFor event={event} />}
        </Panel>
        <Panel title="Facts">
          <Facts event={event} />
        </Panel>
      </div>
      <EventContentPanel key={id} id={id} />
    </>
  )
}

function WaitsFor({ event }: { event: EventAnswer }) {
  return (
    <div class="waits">
      <h3>Waits for {event.behind.length === 1 ? 'an earlier event' : 'earlier events'}</h3>
      <ul>
        {event.behind.map(({ id, status, seq }) => (
          <li key={id}>
            <StatusBadge status={status} /> <a href={linkToEvent(id)}>{id}</a>{' '}
            <span class="soft">
              seq {number(seq)}
              {status === 'dead_letter' && `, ${ONLY_WITH_HOLD}`}
            </span>
          </li>
        ))}
      </ul>
    </div>
  )
}

function Facts({ event }: { event: EventAnswer }) {
  const { aggregateType, aggregateId, topic } = event
  const ofAggregate = new URLSearchParams({ aggregateType, aggregateId }).toString()
  return (
    <dl class="facts">
      <dt>Aggregate</dt>
      <dd>
        <a href={linkTo('events', ofAggregate)} title="All events of this aggregate">
          {aggregateType}
        </a>
        <Copyable text={aggregateId} what="the aggregate id" />
      </dd>
      <dt>Topic</dt>
      <dd>
        <a href={linkTo('events', new URLSearchParams({ topic }).toString())}>{topic}</a>
      </dd>
      <dt>Lane</dt>
      <dd>
        <code>{event.lane}</code>
      </dd>
      <dt>Seq</dt>
      <dd>{number(event.seq)}</dd>
      <dt>Attempts</dt>
      <dd>
        {number(event.attempts)} of {number(event.maxAttempts)}
      </dd>
      <dt>Worker</dt>
      <dd>{event.workerId ?? '–'}</dd>
    </dl>
  )
}
