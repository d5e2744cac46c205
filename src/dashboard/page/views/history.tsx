// The last hour in four plots that share a pointer.
import type { Sample } from '../../api.ts'
import { duration, number, rate, shortNumber } from '../data/format.ts'
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

export function History(props: { samples: readonly Sample[]; sampleMs: number }) {
  return (
    <section class="history" aria-label="The last hour">
      <Plot
        {...props}
        title="Backlog"
        lines={BACKLOG}
        atLeast={10}
        format={number}
        axis={shortNumber}
        steps={WHOLE_STEPS}
      />
      <Plot
        {...props}
        title="Age of the oldest"
        lines={AGE}
        atLeast={1000}
        format={duration}
        axis={duration}
        steps={TIME_STEPS}
      />
      <Plot
        {...props}
        title="Throughput"
        lines={THROUGHPUT}
        atLeast={4}
        format={perSecond}
        axis={(value) => `${shortNumber(value)}/s`}
      />
      <Plot
        {...props}
        title="Latency, COMMIT to ack"
        lines={LATENCY}
        atLeast={10}
        format={duration}
        axis={duration}
        steps={TIME_STEPS}
      />
    </section>
  )
}
