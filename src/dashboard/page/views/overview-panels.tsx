// The lower half of the overview: what is not sent and why (circuits, pauses), who sends, and how long each type takes.
import type { InstanceShown, Overview } from '../../api.ts'
import { duration, number } from '../data/format.ts'
import { linkTo } from '../data/route.ts'
import { Icon, type IconName } from '../parts/icon.tsx'
import { Loading, Notice } from '../parts/notice.tsx'
import { Panel } from '../parts/panel.tsx'
import { Table } from '../parts/table.tsx'
import { Time } from '../parts/time.tsx'
import { CircuitList, circuitsOf } from './circuit-list.tsx'

interface Props {
  readonly overview: Overview | null
}

export function CircuitsPanel({ overview }: Props) {
  const circuits = overview ? circuitsOf(overview.instances) : []
  return (
    <Panel title="Open circuits">
      {!overview ? (
        <Loading what="the circuits" />
      ) : circuits.length === 0 ? (
        <p class="calm">
          <Icon name="well" /> All closed: every destination takes events.
        </p>
      ) : (
        <CircuitList circuits={circuits} />
      )}
    </Panel>
  )
}

export function PausesPanel({ overview }: Props) {
  const tools = (
    <a class="more" href={linkTo('topics')}>
      Topics
    </a>
  )
  return (
    <Panel title="Pauses" tools={tools}>
      {!overview ? (
        <Loading what="the pauses" />
      ) : overview.pauses.length === 0 ? (
        <p class="calm">
          <Icon name="well" /> Nothing is paused.
        </p>
      ) : (
        <ul class="lines">
          {overview.pauses.map(({ topic, since, by, reason }) => (
            <li key={topic}>
              <Icon name="paused" />
              <p>
                <strong>{topic ?? 'Everything'}</strong> since <Time at={since} />
                {by && ` by ${by}`}
                {reason && <span class="soft"> {reason}</span>}
              </p>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}

export function RunningPanel({ overview }: Props) {
  const tools = (
    <a class="more" href={linkTo('instances')}>
      All about them
    </a>
  )
  return (
    <Panel title="Instances" tools={tools}>
      {!overview ? (
        <Loading what="the instances" />
      ) : overview.instances.length === 0 ? (
        <Notice icon="attention" title="No instance runs">
          Events are saved and wait. Start the service, or <code>aftercommit relay</code>.
        </Notice>
      ) : (
        <ul class="lines">
          {overview.instances.map((instance) => (
            <li key={instance.id} class={classOf(instance)}>
              <Icon name={iconOf(instance)} />
              <p>
                <strong>{instance.workerId}</strong>{' '}
                <span class="soft">
                  {seenWordsOf(instance)} {duration(instance.seenMsAgo)} ago
                </span>
              </p>
              <span class="soft">{number(instance.inFlight)} in flight</span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}

function iconOf({ isMissed, isLost, isLate }: InstanceShown): IconName {
  if (isMissed) return 'trouble'
  if (isLost) return 'idle'
  return isLate ? 'attention' : 'well'
}

function seenWordsOf({ isMissed, isLost, isLate }: InstanceShown): string {
  if (isMissed) return 'lost, last seen'
  if (isLost) return 'gone, last seen'
  return isLate ? 'late, last seen' : 'seen'
}

function classOf({ isMissed, isLost, isLate }: InstanceShown): string {
  return isMissed ? 'is-bad' : isLost || isLate ? 'is-past' : 'is-good'
}

export function LatencyPanel({ overview }: Props) {
  return (
    <Panel title="Slowest types" note="from save to record, newest events">
      {!overview ? (
        <Loading what="the latencies" />
      ) : overview.latency.length === 0 ? (
        <Notice icon="events" title="Nothing was published lately" />
      ) : (
        <Table
          caption="Latency by event type"
          class="table-compact"
          items={overview.latency.toSorted((a, b) => b.p95Ms - a.p95Ms).slice(0, 8)}
          keyOf={({ type }) => type}
          columns={[
            { name: 'Type', kind: 'main', cell: ({ type }) => type },
            { name: 'Events', kind: 'number', isMinor: true, cell: ({ events }) => number(events) },
            { name: 'Median', kind: 'number', cell: ({ medianMs }) => duration(medianMs) },
            { name: 'p95', kind: 'number', cell: ({ p95Ms }) => duration(p95Ms) },
            { name: 'Max', kind: 'number', isMinor: true, cell: ({ maxMs }) => duration(maxMs) },
          ]}
        />
      )}
    </Panel>
  )
}
