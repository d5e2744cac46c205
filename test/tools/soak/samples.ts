// What was measured in the course of a run, and what can be read from it.
import type { PhaseName } from './phases.ts'
import { fitSlope } from './fit.ts'
import type { Memory } from './resources.ts'
import type { Measurement } from './service.ts'
import type { StatementTotal, StatementTotals, Step, TableSize } from './table-watch.ts'

export interface Sample {
  readonly atSeconds: number
  readonly phase: PhaseName
  readonly service: Measurement
  readonly table: TableSize
  readonly statements: StatementTotals
}

export const MB = 2 ** 20

const WINDOW_SECONDS = 60

export const afterWarmUp = (samples: readonly Sample[]) =>
  samples.filter(({ phase }) => phase !== 'warm-up')

export const ofPhase = (samples: readonly Sample[], name: PhaseName) =>
  samples.filter(({ phase }) => phase === name)

/** How fast it grew after the warm-up, by a straight line through all of it. */
export function mbPerMinute(samples: readonly Sample[], name: keyof Memory): number {
  return fitSlope(
    afterWarmUp(samples).map(({ atSeconds, service }) => ({
      x: atSeconds / 60,
      y: service[name] / MB,
    })),
  )
}

export function most(samples: readonly Sample[], name: keyof TableSize): number {
  return Math.max(0, ...samples.map(({ table }) => table[name]))
}

/** How much of something was written from the first of the samples to the last. */
export function written(samples: readonly Sample[], name: 'rows' | 'versions'): number {
  const [first, last] = [samples[0], samples.at(-1)]
  return first && last ? last.table[name] - first.table[name] : 0
}

/** The samples in two halves, by time. */
export function halves(samples: readonly Sample[]): [Sample[], Sample[]] {
  const middle = ((samples[0]?.atSeconds ?? 0) + (samples.at(-1)?.atSeconds ?? 0)) / 2
  return [
    samples.filter(({ atSeconds }) => atSeconds <= middle),
    samples.filter(({ atSeconds }) => atSeconds > middle),
  ]
}

/** What one call of a statement cost in the last minute of these samples, on average. */
export function costAtEnd(samples: readonly Sample[], step: Step): StatementTotal {
  const last = samples.at(-1)
  const first = samples.find(({ atSeconds }) => atSeconds >= last!.atSeconds - WINDOW_SECONDS)
  const [from, to] = [first?.statements[step], last?.statements[step]]
  const calls = (to?.calls ?? 0) - (from?.calls ?? 0)
  if (!to || calls <= 0) return { calls: 0, ms: 0, pages: 0 }
  return {
    calls,
    ms: (to.ms - (from?.ms ?? 0)) / calls,
    pages: (to.pages - (from?.pages ?? 0)) / calls,
  }
}
