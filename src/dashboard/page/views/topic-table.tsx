// The topics that running instances publish to, and whether events go out to each.
import type { InstanceShown, Overview } from '../../api.ts'
import { count, duration } from '../data/format.ts'
import { linkTo } from '../data/route.ts'
import { knownTopics } from '../data/session.ts'
import { Icon } from '../parts/icon.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { circuitsOf } from './circuit-list.tsx'

interface TopicShown {
  readonly topic: string
  readonly state: 'paused' | 'trouble' | 'well'
  readonly publishers: string
  readonly backlog: Overview['topics'][number] | null
}

const STATES = {
  paused: { kind: 'paused', word: 'Paused' },
  trouble: { kind: 'error', word: 'Out of reach' },
  well: { kind: 'published', word: 'Sending' },
} as const

interface Actions {
  readonly pause: (topic: string) => void
  readonly move: (topic: string) => void
}

/** `act`: null if the person may only look. */
export function TopicTable(props: { overview: Overview; act: Actions | null }) {
  const { act } = props
  const columns: Column<TopicShown>[] = [
    {
      name: 'State',
      isBare: true,
      cell: ({ state }) => (
        <span class={`badge badge-${STATES[state].kind}`}>
          <Icon name={state} />
          {STATES[state].word}
        </span>
      ),
    },
    {
      name: 'Topic',
      kind: 'main',
      isBare: true,
      cell: ({ topic }) => (
        <a href={linkTo('events', new URLSearchParams({ topic }).toString())}>{topic}</a>
      ),
    },
    {
      name: 'Waiting',
      cell: ({ backlog }) =>
        backlog
          ? `${count(backlog.pending)}, the oldest for ${duration(backlog.oldestMs)}`
          : 'none',
    },
    { name: 'Publisher', cell: ({ publishers }) => publishers || '–' },
  ]
  if (act) columns.push({ name: 'Action', cell: (shown) => <ActionCell shown={shown} act={act} /> })
  return (
    <Table
      caption="Topics"
      columns={columns}
      items={topicsOf(props.overview)}
      keyOf={({ topic }) => topic}
    />
  )
}

function ActionCell({ shown, act }: { shown: TopicShown; act: Actions }) {
  const { topic, state, backlog } = shown
  return (
    <div class="actions">
      {state !== 'paused' && (
        <button
          type="button"
          class="button button-small"
          aria-label={`Pause ${topic}`}
          onClick={() => act.pause(topic)}
        >
          Pause…
        </button>
      )}
      {backlog && (
        <button
          type="button"
          class="button button-small button-quiet"
          aria-label={`Move the events of ${topic}`}
          onClick={() => act.move(topic)}
        >
          Move…
        </button>
      )}
    </div>
  )
}

function topicsOf(overview: Overview): TopicShown[] {
  const { instances, pauses } = overview
  const circuits = circuitsOf(instances)
  return knownTopics(overview).map((topic) => {
    const names = publishersOf(topic, instances)
    const isOpen = circuits.some(
      (circuit) =>
        circuit.topic === topic || (circuit.topic === null && names.includes(circuit.publisher)),
    )
    const isPaused = pauses.some((pause) => pause.topic === null || pause.topic === topic)
    const state = isPaused ? 'paused' : isOpen ? 'trouble' : 'well'
    const backlog = overview.topics.find((one) => one.topic === topic) ?? null
    return { topic, state, publishers: names.join(', '), backlog }
  })
}

function publishersOf(topic: string, instances: readonly InstanceShown[]): string[] {
  const all = instances.flatMap(({ publishers }) => publishers)
  const own = all.filter(({ topics }) => topics?.includes(topic))
  return [...new Set(own.map(({ name }) => name))]
}
