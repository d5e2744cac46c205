// The past in four plots that share a pointer: of everything, of one instance or of one topic.
import type { HistoryAnswer } from '../../api.ts'
import { duration, number, rate, shortNumber } from '../data/format.ts'
import { type Choice, formatChoice, type Past, SPANS, type Span } from '../data/history.ts'
import { linkTo, replaceAddress } from '../data/route.ts'
import { type Line, Plot } from '../parts/plot.tsx'

const BACKLOG: Line[] = [
  { name: 'unsent', color: '--line-1', isFilled: true, read: ({ pending }) => pending },
]
const AGE: Line[] = [
  { name: 'oldest', color: '--line-2', isFilled: true, read: ({ oldestMs }) => oldestMs },
]
const THROUGHPUT: Line[] = [
  { name: 'immediate', color: '--line-1', isFilled: true, read: ({ immediate }) => immediate },
  { name: 'fallback', color: '--line-2', dash: [6, 3], read: ({ fallback }) => fallback },
  { name: 'failed', color: '--line-3', dash: [2, 2], read: ({ failed }) => failed },
]
const LATENCY: Line[] = [
  { name: 'p50', color: '--line-1', read: ({ latency }) => latency?.p50Ms ?? null },
  { name: 'p95', color: '--line-2', dash: [6, 3], read: ({ latency }) => latency?.p95Ms ?? null },
  { name: 'p99', color: '--line-3', dash: [2, 2], read: ({ latency }) => latency?.p99Ms ?? null },
]

const WHOLE_STEPS = Array.from({ length: 10 }, (_, power) => 10 ** power).flatMap((ten) => [
  ten,
  2 * ten,
  5 * ten,
])
/** So that an axis shows 10 min and not 8 min 20 s. */
const TIME_STEPS = [1, 10, 100, 1000].flatMap((ms) => [ms, 2 * ms, 5 * ms])
for (const minutes of [0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 360, 720, 1440, 2880, 10_080]) {
  TIME_STEPS.push(minutes * 60_000)
}

const perSecond = (value: number) => `${rate(value)}/s`

const SPAN_WORDS: Record<Span, string> = { '15m': '15 min', '1h': '1 hour', '3h': '3 hours' }

export function History({ choice, past }: { choice: Choice; past: Past }) {
  const isFiltered = choice.instance !== null || choice.topic !== null
  const empty = past.answer.error
    ? past.answer.error.message
    : past.answer.data
      ? 'No figures for this time'
      : 'Loading…'
  const ofAll = isFiltered ? ', whole table' : ''
  const shared = { points: past.points, spanMs: past.spanMs, empty }
  return (
    <section class="history" aria-label="History">
      <Chooser choice={choice} known={past.answer.data} />
      <Plot
        {...shared}
        points={past.ofTable}
        title={`Backlog${ofAll}`}
        lines={BACKLOG}
        atLeast={10}
        format={number}
        axis={shortNumber}
        steps={WHOLE_STEPS}
      />
      <Plot
        {...shared}
        points={past.ofTable}
        title={`Age of the oldest${ofAll}`}
        lines={AGE}
        atLeast={1000}
        format={duration}
        axis={duration}
        steps={TIME_STEPS}
      />
      <Plot
        {...shared}
        title="Throughput"
        lines={THROUGHPUT}
        atLeast={4}
        format={perSecond}
        axis={(value) => `${shortNumber(value)}/s`}
      />
      <Plot
        {...shared}
        title="Latency, COMMIT to ack"
        lines={LATENCY}
        atLeast={10}
        format={duration}
        axis={duration}
        steps={TIME_STEPS}
        {...(choice.topic !== null && { empty: 'Not known by topic' })}
      />
    </section>
  )
}

function Chooser({ choice, known }: { choice: Choice; known: HistoryAnswer | null }) {
  const change = (changed: Partial<Choice>) =>
    replaceAddress(linkTo('overview', formatChoice({ ...choice, ...changed })))
  const { instance, topic } = choice
  const topics = known?.topics ?? []
  const instances = known?.instances ?? []
  return (
    <div class="history-head">
      <h2>History</h2>
      <fieldset class="segments">
        <legend class="visually-hidden">How far back</legend>
        {(Object.keys(SPANS) as Span[]).map((span) => (
          <button
            key={span}
            type="button"
            aria-pressed={(choice.span ?? '1h') === span}
            onClick={() => change({ span })}
          >
            {SPAN_WORDS[span]}
          </button>
        ))}
      </fieldset>
      <select
        aria-label="Of which instance"
        value={instance ?? ''}
        onChange={({ currentTarget }) => change({ instance: currentTarget.value || null })}
      >
        <option value="">all instances</option>
        {instance !== null && !instances.some(({ id }) => id === instance) && (
          <option value={instance}>one without a history</option>
        )}
        {instances.map((one) => (
          <option key={one.id} value={one.id}>
            {one.workerId}
            {one.state === 'running' ? '' : ` (${one.state})`}
          </option>
        ))}
      </select>
      <select
        aria-label="Of which topic"
        value={topic ?? ''}
        onChange={({ currentTarget }) => change({ topic: currentTarget.value || null })}
      >
        <option value="">all topics</option>
        {(topic === null || topics.includes(topic) ? topics : [topic, ...topics]).map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </div>
  )
}
