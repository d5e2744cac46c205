// From the turns of all rounds to one figure each.
import type { ClaimsResult, OverheadResult } from './job.ts'
import type { ClaimFigures, DrainFigures, HistoryFigures, LoadFigures } from './results.ts'
import { median, type Spread } from './spread.ts'
import type { DrainResult, LoadTurn } from './turn.ts'

export function summarizeLoads(turns: readonly LoadTurn[]): LoadFigures {
  const medianOf = (figure: (turn: LoadTurn) => number) => median(turns.map(figure))
  const spread = (figure: (turn: LoadTurn) => Spread): Spread => ({
    p50: medianOf((turn) => figure(turn).p50),
    p95: medianOf((turn) => figure(turn).p95),
    p99: medianOf((turn) => figure(turn).p99),
  })
  const sum = (figure: (turn: LoadTurn) => number) =>
    turns.reduce((total, turn) => total + figure(turn), 0)
  return {
    rounds: turns.length,
    perSecond: medianOf(({ perSecond }) => perSecond),
    perSecondEach: turns.map(({ perSecond }) => perSecond),
    latencyMs: spread(({ latencyMs }) => latencyMs),
    unitMs: spread(({ unitMs }) => unitMs),
    committed: sum(({ committed }) => committed),
    lost: sum(({ arrivals }) => arrivals?.lost ?? 0),
    duplicates: sum(({ arrivals }) => arrivals?.duplicates ?? 0),
    statementsPerEvent: medianOf(({ cost, committed }) => cost.statements / committed),
    walBytesPerEvent: medianOf(({ cost, committed }) => cost.walBytes / committed),
    cpuSecondsPer10kEvents: medianOf(({ cpuSeconds, committed }) => {
      return (cpuSeconds / committed) * 10_000
    }),
    peakRssMb: medianOf(({ peakRssMb }) => peakRssMb),
  }
}

export function summarizeDrains(turns: readonly DrainResult[]): DrainFigures {
  const sum = (key: keyof DrainResult['arrivals']) =>
    turns.reduce((total, { arrivals }) => total + arrivals[key], 0)
  const each = turns.map(({ rowsPerSecond }) => rowsPerSecond)
  const cpu = turns.map(({ postgresCpuUs }) => postgresCpuUs).filter((us) => us !== null)
  return {
    rounds: turns.length,
    rowsPerSecond: median(each),
    rowsPerSecondEach: each,
    postgresCpuUs: cpu.length === 0 ? null : median(cpu),
    postgresCpuUsEach: cpu,
    delivered: sum('delivered'),
    lost: sum('lost'),
    duplicates: sum('duplicates'),
  }
}

export function summarizeOverhead(turns: readonly OverheadResult[]): OverheadResult {
  const medianOf = (kind: keyof OverheadResult) => median(turns.map((turn) => turn[kind]))
  return {
    noneMs: medianOf('noneMs'),
    handWrittenMs: medianOf('handWrittenMs'),
    withOutboxMs: medianOf('withOutboxMs'),
  }
}

export function summarizeClaims(
  { scene, rows }: Pick<ClaimFigures, 'scene' | 'rows'>,
  turns: readonly ClaimsResult[],
): ClaimFigures {
  const [each, ratios] = [turns.map(({ claimMs }) => claimMs), turns.map(({ ratio }) => ratio)]
  return {
    scene,
    rows,
    rounds: turns.length,
    claimMs: median(each),
    claimMsEach: each,
    firstMs: median(turns.map(({ firstMs }) => firstMs)),
    ratio: median(ratios),
    ratioEach: ratios,
  }
}

export function summarizeHistory(
  published: number,
  turns: readonly Omit<HistoryFigures, 'published'>[],
): HistoryFigures {
  return {
    published,
    pollMs: median(turns.map(({ pollMs }) => pollMs)),
    rowsPerSecond: median(turns.map(({ rowsPerSecond }) => rowsPerSecond)),
    lost: turns.reduce((total, { lost }) => total + lost, 0),
    duplicates: turns.reduce((total, { duplicates }) => total + duplicates, 0),
  }
}
