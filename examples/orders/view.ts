// What the live view looks like: a pure function from the state of the demo to lines of text.
import { performance } from 'node:perf_hooks'
import { paint, type View } from './screen.ts'
import { BUCKET_MS, type Bucket, percentile, type Tally } from './tally.ts'
import { type Phase, SLICES, type Timeline } from './timeline.ts'

export interface State {
  readonly time: Timeline
  readonly pending: number
  readonly units: { readonly rolledBack: number }
  readonly tally: Tally
}

const MARKS = {
  running: paint('green', '━'),
  'broker away': paint('red', '×'),
  'broker starting': paint('yellow', '~'),
  'broker back': paint('green', '━'),
  draining: paint('green', '━'),
} satisfies Record<Phase, string>

const BARS = '▁▂▃▄▅▆▇█'
const SHOWN_BUCKETS = 60

export function renderState({ time, pending, units, tally }: State): View {
  const { immediate, fallback } = tally.latencies
  const clock = showClock(time.elapsedMs)
  const phase = paint(time.phase === 'broker away' ? 'red' : 'bold', time.phase)
  const dead = tally.dead > 0 ? `, and ${tally.dead} dead letters` : ''
  const line = [
    `${clock}  ${time.phase.padEnd(15)}`,
    `committed ${tally.committed}  rolled back ${units.rolledBack}`,
    `at once ${immediate.length}  rescued ${fallback.length}  pending ${pending}${dead}`,
    showLatency(immediate),
    `circuit ${showCircuit(tally)}`,
  ]
  return {
    line: line.filter(Boolean).join('  '),
    block: [
      '',
      `${clock}  ${showTimeline(time)}  ${phase}`,
      '',
      row('committed', `${showCount(tally.committed)} events; ${units.rolledBack} rollbacks`),
      row('published at once', `${showCount(immediate.length).padEnd(8)}${showLatency(immediate)}`),
      row('rescued by poller', `${showCount(fallback.length).padEnd(8)}${showLatency(fallback)}`),
      row('pending', `${showCount(pending)}${dead}`),
      row('circuit', showCircuit(tally)),
      row('published', showBuckets(tally.buckets)),
    ],
  }
}

export function showCount(count: number): string {
  return count.toLocaleString('en-US')
}

export function showClock(ms: number): string {
  return `${(ms / 1_000).toFixed(1).padStart(6)} s`
}

export function showMs(ms: number | null): string {
  if (ms === null) return '-'
  if (ms >= 1_000) return `${(ms / 1_000).toFixed(1)} s`
  return `${ms.toFixed(ms < 10 ? 1 : 0)} ms`
}

function row(label: string, value: string): string {
  return `  ${paint('dim', label.padEnd(20))}${value}`
}

function showLatency(latencies: readonly number[]): string {
  if (latencies.length === 0) return ''
  return `p50 ${showMs(percentile(latencies, 50))}  p99 ${showMs(percentile(latencies, 99))}`
}

function showCircuit({ circuit }: Tally): string {
  if (!circuit) return paint('green', 'closed')
  const seconds = ((performance.now() - circuit.openedAt) / 1_000).toFixed(1)
  return paint('red', `open for ${seconds} s, probes: ${circuit.probes}`)
}

function showTimeline({ passed }: Timeline): string {
  const marks = passed.map((phase) => MARKS[phase])
  return marks.join('') + paint('dim', '·'.repeat(SLICES - marks.length))
}

// By the square root: the burst after an outage is so high that a steady rate would vanish beside it.
function showBuckets(buckets: readonly Bucket[]): string {
  const peak = Math.max(0, ...buckets.map(total))
  const shown = buckets.slice(-SHOWN_BUCKETS).map((bucket) => {
    if (total(bucket) === 0) return ' '
    const level = Math.sqrt(total(bucket) / peak) * (BARS.length - 1)
    const bar = BARS[Math.round(level)]!
    return paint(bucket.fallback > bucket.immediate ? 'yellow' : 'green', bar)
  })
  return `${shown.join('')}  peak ${showCount((peak * 1_000) / BUCKET_MS)}/s`
}

function total({ immediate, fallback }: Bucket): number {
  return immediate + fallback
}
