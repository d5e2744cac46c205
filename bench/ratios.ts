// Our figures as ratios to everybody else's, workload by workload: below 1 we have less of it than they do.
import type { DrainFigures, LoadFigures, Results } from './results.ts'
import { EMPTY_SCENE } from './scenes.ts'

const OURS = 'aftercommit'

type Ratios = Record<string, Record<string, Record<string, number>>>

export function ratiosOf({ loads, drains, history, claims, overhead }: Results): Ratios {
  const ratios: Ratios = {}
  for (const [workload, figures] of Object.entries(loads)) {
    ratios[workload] = against(figures, loadNumbers)
  }
  for (const [workload, figures] of Object.entries(drains)) {
    ratios[workload] = against(figures, drainNumbers)
  }
  const [fresh, ...filled] = history
  if (fresh) {
    ratios['history'] = Object.fromEntries(
      filled.map((one) => [
        `${one.published} against ${fresh.published}`,
        { pollMs: one.pollMs / fresh.pollMs, drainTime: fresh.rowsPerSecond / one.rowsPerSecond },
      ]),
    )
  }
  if (claims.length > 0) {
    const free = claims.find(({ scene }) => scene === EMPTY_SCENE)
    ratios['claims'] = Object.fromEntries(
      claims
        .filter((one) => one !== free)
        .map(({ scene, ratio, firstMs }) => [
          scene,
          { claimMs: ratio, ...(free && { firstMs: firstMs / free.firstMs }) },
        ]),
    )
  }
  if (overhead) {
    ratios['overhead'] = {
      'an INSERT by hand': { unitMs: overhead.withOutboxMs / overhead.handWrittenMs },
      'no event': { unitMs: overhead.withOutboxMs / overhead.noneMs },
    }
  }
  return ratios
}

function against<T>(figures: Record<string, T>, numbersOf: (one: T) => Record<string, number>) {
  const { [OURS]: ours, ...others } = figures
  if (!ours) return {}
  const mine = Object.entries(numbersOf(ours))
  return Object.fromEntries(
    Object.entries(others).map(([name, other]) => {
      const theirs = numbersOf(other)
      const shared = mine.filter(([key]) => theirs[key] !== undefined)
      return [name, Object.fromEntries(shared.map(([key, value]) => [key, value / theirs[key]!]))]
    }),
  )
}

function drainNumbers({ rowsPerSecond, postgresCpuUs }: DrainFigures): Record<string, number> {
  return { rowsPerSecond, ...(postgresCpuUs !== null && { postgresCpuUs }) }
}

function loadNumbers({ latencyMs, unitMs, ...one }: LoadFigures): Record<string, number> {
  return {
    perSecond: one.perSecond,
    latencyP50: latencyMs.p50,
    latencyP95: latencyMs.p95,
    latencyP99: latencyMs.p99,
    unitP50: unitMs.p50,
    statementsPerEvent: one.statementsPerEvent,
    walBytesPerEvent: one.walBytesPerEvent,
    cpuSecondsPer10kEvents: one.cpuSecondsPer10kEvents,
    peakRssMb: one.peakRssMb,
  }
}
