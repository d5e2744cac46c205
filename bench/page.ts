// docs/benchmarks.md and its plots, from the results of whole runs. Nothing on the page is written by hand.
import { mkdir, writeFile } from 'node:fs/promises'
import { type Bar, plotBars, round } from './plot.ts'
import { majorOf, type Report } from './reports.ts'
import type { DrainFigures, LoadFigures } from './results.ts'
import { isMet, isUnclear, type Target } from './targets.ts'
import {
  CLAIMS_TEXT,
  CONTENDER_TEXTS,
  COST_TEXT,
  HISTORY_TEXT,
  introText,
  nodesText,
  OVERHEAD_TEXT,
  SPENT_TEXT,
  WORKLOAD_TEXTS,
} from './page-texts.ts'

const DOCS = new URL('../docs/', import.meta.url)
const PLOTS = new URL('./benchmarks/', DOCS)

/** All figures of the first report, and of the others whether the targets were met. */
export async function writePage([report, ...others]: readonly [
  Report,
  ...Report[],
]): Promise<void> {
  await mkdir(PLOTS, { recursive: true })
  const { loads, drains } = report
  const sections = [intro(report), targetTables([report, ...others])]

  for (const [workload, figures] of inOrder(loads)) {
    const file = `${workload.replaceAll(' ', '-')}.svg`
    const isLatency = workload === 'latency'
    const plot = isLatency
      ? plotBars(
          'Commit to ack at 50 units a second, p99 (less is better)',
          'ms',
          barsOf(figures, (one) => one.latencyMs.p99),
        )
      : plotBars(
          `${workload}: delivered`,
          'events/s',
          barsOf(figures, (one) => one.perSecond),
        )
    await writeFile(new URL(file, PLOTS), plot)
    sections.push(
      `## ${titleOf(workload)}\n\n${WORKLOAD_TEXTS[workload]}\n\n![${workload}](benchmarks/${file})\n\n${loadTable(figures)}`,
    )
  }
  for (const [workload, figures] of inOrder(drains)) {
    const file = `${workload.replaceAll(' ', '-')}.svg`
    const bars = barsOf(figures, (one) => one.rowsPerSecond)
    await writeFile(new URL(file, PLOTS), plotBars(`${workload}: sent`, 'rows/s', bars))
    sections.push(
      `## ${titleOf(workload)}\n\n${WORKLOAD_TEXTS[workload]}\n\n![${workload}](benchmarks/${file})\n\n${drainTable(figures)}`,
    )
  }
  if (report.failures.length > 0) sections.push(failureTable(report))
  sections.push(
    claimTable(report),
    historyTable(report),
    overheadTable(report),
    costTable(loads['throughput 64']),
    spentTable(report),
  )
  await writeFile(new URL('benchmarks.md', DOCS), `${sections.join('\n\n')}\n`)
}

function intro({ versions }: Report): string {
  const list = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  return introText(contenderTable(), list.join(', '))
}

function contenderTable(): string {
  const rows = Object.entries(CONTENDER_TEXTS).map(([name, { what, driver, tuned }]) => {
    return [`\`${name}\``, what, driver, tuned]
  })
  return table(['', 'what it is', 'driver', 'tuned'], rows)
}

/** One table for each version of Node, as some targets depend on it. */
export function targetTables(reports: readonly Report[]): string {
  const tables = reports.map(({ versions, targets }) => {
    return `### Node ${majorOf(versions['node']!)}\n\n${targetTable(targets)}`
  })
  const text = nodesText(reports.map(({ versions }) => versions['node']!))
  return `## Targets\n\n${[text, ...tables].join('\n\n')}`
}

function targetTable(targets: readonly Target[]): string {
  const rows = targets.map((target) => {
    const { key, is, target: bar, figure, range } = target
    const met = isMet(target)
    const judged = isUnclear(target) ? 'unclear' : met ? 'yes' : 'no'
    const verdict = met === null ? 'not measured' : judged
    const between = range ? range.map((end) => end.toFixed(2)).join(', ') : ''
    return [key, `${is} ${bar}`, figure === null ? '' : figure.toFixed(2), between, verdict]
  })
  return table(['', 'target', 'measured', 'from, to', 'met'], rows)
}

function loadTable(figures: Record<string, LoadFigures>): string {
  const rows = Object.entries(figures).map(([name, one]) => [
    name,
    round(one.perSecond),
    rangeOf(one.perSecondEach),
    ...[one.latencyMs.p50, one.latencyMs.p95, one.latencyMs.p99].map(shown),
    round(one.unitMs.p50),
    String(one.committed),
    String(one.lost),
    String(one.duplicates),
  ])
  const heads = [
    '',
    'events/s',
    'from, to',
    'latency p50 ms',
    'p95 ms',
    'p99 ms',
    'unit p50 ms',
    'committed',
    'lost',
    'twice',
  ]
  return table(heads, rows)
}

function drainTable(figures: Record<string, DrainFigures>): string {
  const rows = Object.entries(figures).map(([name, one]) => {
    const { delivered, lost, duplicates } = one
    const range = rangeOf(one.rowsPerSecondEach)
    const cpu = one.postgresCpuUs === null ? '' : round(one.postgresCpuUs)
    const counts = [delivered, lost, duplicates].map(String)
    return [name, round(one.rowsPerSecond), range, cpu, ...counts]
  })
  const heads = ['', 'rows/s', 'from, to', 'Postgres CPU, µs/event', 'delivered', 'lost', 'twice']
  return table(heads, rows)
}

function claimTable({ claims }: Report): string {
  const rows = claims.map(({ scene, rows: inTheWay, claimMs, claimMsEach, ratio, firstMs }) => [
    scene,
    String(inTheWay),
    round(claimMs),
    rangeOf(claimMsEach),
    ratio.toFixed(2),
    round(firstMs),
  ])
  const heads = [
    'in the way',
    'rows',
    'claim, ms',
    'from, to',
    'against an empty table',
    'first claim, ms',
  ]
  return `## Claims\n\n${CLAIMS_TEXT}\n\n${table(heads, rows)}`
}

function failureTable({ failures }: Report): string {
  const rows = failures.map(({ turn, reason }) => [turn, reason])
  return `## Turns without a figure\n\n${table(['', 'what happened'], rows)}`
}

function historyTable({ history }: Report): string {
  const rows = history.map(({ published, pollMs, rowsPerSecond, lost, duplicates }) => {
    return [
      String(published),
      round(pollMs),
      round(rowsPerSecond),
      String(lost),
      String(duplicates),
    ]
  })
  const heads = ['published rows', 'idle poll, ms', 'drain, rows/s', 'lost', 'twice']
  return `## History\n\n${HISTORY_TEXT}\n\n${table(heads, rows)}`
}

function overheadTable({ overhead, idleStatementsPerSecond }: Report): string {
  const rows = overhead
    ? [
        ['no event', round(overhead.noneMs)],
        ['an INSERT by hand', round(overhead.handWrittenMs)],
        ['withOutbox()', round(overhead.withOutboxMs)],
      ]
    : []
  return `## A unit of work, for its caller\n\n${OVERHEAD_TEXT}\n\n${table(['', 'median ms'], rows)}

An idle process sends ${round(idleStatementsPerSecond ?? NaN)} statements a second. BEGIN and COMMIT are not counted.`
}

function costTable(figures: Record<string, LoadFigures> = {}): string {
  const rows = Object.entries(figures).map(([name, one]) => [
    name,
    one.statementsPerEvent.toFixed(2),
    round(one.walBytesPerEvent),
    round(one.cpuSecondsPer10kEvents),
    round(one.peakRssMb),
  ])
  const heads = ['', 'statements/event', 'WAL bytes/event', 'CPU s/10,000 events', 'peak RSS, MB']
  return `## Cost at 64 concurrent units of work\n\n${COST_TEXT}\n\n${table(heads, rows)}`
}

function spentTable({ spent }: Report): string {
  const rows = spent.map(({ workload, turns, seconds }) => {
    return [workload, String(turns), (seconds / 60).toFixed(1)]
  })
  const minutes = spent.reduce((sum, { seconds }) => sum + seconds, 0) / 60
  rows.push(['together', '', minutes.toFixed(1)])
  return `## The run\n\n${SPENT_TEXT}\n\n${table(['', 'turns', 'minutes'], rows)}`
}

/** As the texts are, whichever was run first. */
function inOrder<T>(of: Record<string, T>): [string, T][] {
  return Object.keys(WORKLOAD_TEXTS).flatMap((workload) => {
    const found = of[workload]
    return found ? [[workload, found]] : []
  })
}

function barsOf<T>(figures: Record<string, T>, value: (one: T) => number): Bar[] {
  return Object.entries(figures)
    .map(([label, one]) => ({ label, value: value(one), ours: label.startsWith('aftercommit') }))
    .filter((bar) => Number.isFinite(bar.value))
    .toSorted((a, b) => b.value - a.value)
}

function titleOf(workload: string): string {
  return `${workload[0]!.toUpperCase()}${workload.slice(1)}`
}

function rangeOf(each: readonly number[]): string {
  return `${round(Math.min(...each))}, ${round(Math.max(...each))}`
}

function shown(ms: number | null): string {
  return ms === null || Number.isNaN(ms) ? '' : round(ms)
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n')
}
