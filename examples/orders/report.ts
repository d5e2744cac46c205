// The table at the end: the oracle's verdict, and how long events took from commit to ack.
import type { Verdict } from './oracle.ts'
import { paint } from './screen.ts'
import { percentile, type Tally } from './tally.ts'
import { showCount, showMs } from './view.ts'

const LABEL = 26
const COLUMN = 10
const RULE = `  ${'─'.repeat(LABEL + 4 * COLUMN)}`

/** Nothing may be lost, invented or reordered; duplicates are within the promise. */
export function isGood({ lost, phantoms, outOfOrder }: Verdict): boolean {
  return lost === 0 && phantoms === 0 && outOfOrder === 0
}

export interface Report {
  readonly verdict: Verdict
  readonly witness: string
  readonly rolledBack: number
  readonly tally: Tally
}

export function renderReport({ verdict, witness, rolledBack, tally }: Report): string {
  const { committed, delivered, lost, phantoms, outOfOrder, duplicates } = verdict
  const { immediate, fallback } = tally.latencies
  const dedupe = duplicates > 0 ? 'sent more than once; consumers dedupe on event-id' : ''
  return [
    '',
    RULE,
    row('committed', [showCount(committed)], 'events, counted in the orders table'),
    row('delivered', [showCount(delivered)], `of them, counted by ${witness}`),
    row('lost', [mark(lost)]),
    row('duplicates', [showCount(duplicates)], dedupe),
    row('out of order', [mark(outOfOrder)], 'within an order'),
    row('phantoms', [mark(phantoms)], `from ${rolledBack} rollbacks`),
    RULE,
    row(paint('dim', 'commit to ack'.padEnd(LABEL)), ['events', 'p50', 'p99', 'max']),
    row('published at once', latencyColumns(immediate)),
    row('rescued by the poller', latencyColumns(fallback)),
    RULE,
    '',
  ].join('\n')
}

function row(label: string, columns: readonly string[], note = ''): string {
  const cells = columns.map((text) => text.padStart(COLUMN)).join('')
  return `  ${label.padEnd(LABEL)}${cells}${note ? `   ${paint('dim', note)}` : ''}`
}

function latencyColumns(latencies: readonly number[]): string[] {
  const [p50, p99, max] = [50, 99, 100].map((percent) => showMs(percentile(latencies, percent)))
  return [showCount(latencies.length), p50!, p99!, max!]
}

/** Padded before it is painted: the codes of a color would count as width. */
function mark(count: number): string {
  return paint(count === 0 ? 'green' : 'red', showCount(count).padStart(COLUMN))
}
