// The processes that run an outbox on the table: are they there, what do they send, and what can they not reach?
import type { InstanceShown } from '../../api.ts'
import { duration, number } from '../data/format.ts'
import { linkTo } from '../data/route.ts'
import { useSession } from '../data/session.ts'
import { Icon } from '../parts/icon.tsx'
import { Loaded, Notice } from '../parts/notice.tsx'
import { Panel, ViewHead } from '../parts/panel.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Time } from '../parts/time.tsx'
import { CircuitList, circuitsOf } from './circuit-list.tsx'

export function InstancesView() {
  const { overview } = useSession()
  return (
    <>
      <ViewHead
        title="Instances"
        lead="Seen in the last hour. Each renews its row every ten seconds."
      />
      <Loaded polled={overview} what="the instances">
        {({ instances }) => (
          <>
            <Circuits instances={instances} />
            <div class="panel">
              {instances.length === 0 ? (
                <Notice icon="attention" title="No instance runs">
                  Events are saved and wait. Start the service, or <code>aftercommit relay</code>.
                </Notice>
              ) : (
                <Table
                  caption="Instances"
                  class="table-instances"
                  items={instances}
                  keyOf={({ id }) => id}
                  columns={COLUMNS}
                />
              )}
            </div>
          </>
        )}
      </Loaded>
    </>
  )
}

function Circuits({ instances }: { instances: readonly InstanceShown[] }) {
  const circuits = circuitsOf(instances)
  if (circuits.length === 0) return null
  return (
    <Panel title="Open circuits" note="they close by themselves when the destination is back">
      <CircuitList circuits={circuits} />
    </Panel>
  )
}

const COLUMNS: readonly Column<InstanceShown>[] = [
  { name: 'State', isBare: true, cell: (instance) => <InstanceState instance={instance} /> },
  {
    name: 'Instance',
    isBare: true,
    cell: ({ id, workerId, host, pid }) => (
      <>
        <strong>{workerId}</strong>
        <p class="soft">
          {host}, pid {pid}, <a href={linkTo('overview', `span=3h&instance=${id}`)}>history</a>
        </p>
      </>
    ),
  },
  { name: 'Seen', cell: ({ seenMsAgo }) => `${duration(seenMsAgo)} ago` },
  { name: 'Started', cell: ({ startedAt }) => <Time at={startedAt} /> },
  { name: 'Version', cell: ({ version }) => version },
  {
    name: 'Runs',
    cell: ({ immediate, poller }) =>
      [immediate && 'immediate path', poller && 'fallback'].filter(Boolean).join(', ') ||
      'saves only',
  },
  {
    name: 'Publishes',
    kind: 'main',
    cell: ({ publishers }) =>
      publishers
        .map(({ name, topics }) => `${name}: ${topics ? topics.join(', ') : 'all topics'}`)
        .join('; ') || '–',
  },
  { name: 'In flight', kind: 'number', cell: ({ inFlight }) => number(inFlight) },
]

function InstanceState({ instance }: { instance: InstanceShown }) {
  const open = instance.circuits.length
  if (instance.isMissed) return <Badge kind="error" icon="unreachable" word="Lost" />
  if (instance.isLost) return <Badge kind="idle" icon="idle" word="Gone" />
  if (open > 0) {
    return (
      <Badge kind="error" icon="trouble" word={`${open} open circuit${open === 1 ? '' : 's'}`} />
    )
  }
  if (instance.isLate) return <Badge kind="warning" icon="attention" word="Late" />
  return <Badge kind="published" icon="well" word="Running" />
}

function Badge(props: {
  kind: string
  icon: 'unreachable' | 'trouble' | 'attention' | 'well' | 'idle'
  word: string
}) {
  return (
    <span class={`badge badge-${props.kind}`}>
      <Icon name={props.icon} />
      {props.word}
    </span>
  )
}
