// Whether the soak was survived: what failed, and what this run was too short to tell. Times are told, never
// judged.
import type { Verdict as Delivery } from '../torture/oracle.ts'
import { judgeClaims, judgeSize, SHORTEST_PHASE_SECONDS, type SizeVerdict } from './bounds.ts'
import type { Phase } from './phases.ts'
import type { Counts } from './resources.ts'
import { afterWarmUp, mbPerMinute, type Sample } from './samples.ts'
import type { Look } from './service.ts'
import { STEPS } from './table-watch.ts'

export interface Evidence {
  readonly phases: readonly Phase[]
  readonly samples: readonly Sample[]
  readonly first: Look
  readonly last: Look
  readonly endedByItself: boolean
  readonly delivery: Delivery
  readonly rowBytes: number
}

export interface SoakVerdict {
  readonly memory: Record<'heap' | 'external' | 'rss', number>
  readonly table: SizeVerdict
  readonly index: SizeVerdict
  readonly failures: readonly string[]
  readonly notJudged: readonly string[]
}

const MOST_MB_PER_MINUTE = 1

/** Over less than this a heap that breathes has any slope. */
const SHORTEST_FIT_SECONDS = 180

export function judgeSoak(evidence: Evidence): SoakVerdict {
  const { samples, phases } = evidence
  const memory = {
    heap: mbPerMinute(samples, 'heapBytes'),
    external: mbPerMinute(samples, 'externalBytes'),
    rss: mbPerMinute(samples, 'rssBytes'),
  }
  const table = judgeSize(samples, 'tableBytes', evidence.rowBytes)
  const index = judgeSize(samples, 'indexBytes', evidence.rowBytes)
  const failures = [
    ...judgeDelivery(evidence.delivery),
    ...judgeHoldings(evidence),
    ...STEPS.filter((step) => !samples.at(-1)!.statements[step]).map(
      (step) => `statements: ${step} was not found among those that Postgres counted`,
    ),
  ]
  const notJudged: string[] = []

  const [, steady] = phases
  if (steady!.seconds * 3 >= SHORTEST_FIT_SECONDS) {
    for (const name of ['heap', 'external'] as const) {
      if (memory[name] < MOST_MB_PER_MINUTE) continue
      failures.push(`${name}: grew by ${memory[name].toFixed(2)} MB a minute after the warm-up`)
    }
  } else notJudged.push(`memory: takes ${SHORTEST_FIT_SECONDS} s after the warm-up`)
  if (steady!.seconds >= SHORTEST_PHASE_SECONDS) {
    failures.push(...table.failures, ...index.failures, ...judgeClaims(samples))
  } else notJudged.push(`sizes: take phases of ${SHORTEST_PHASE_SECONDS} s`)
  return { memory, table, index, failures, notJudged }
}

function judgeDelivery(delivery: Delivery): string[] {
  const names = ['lost', 'phantom', 'duplicates', 'outOfOrder', 'corrupted'] as const
  const failures = names.filter((name) => delivery[name] > 0)
  if (delivery.committed === 0) return ['nothing was committed']
  return failures.map((name) => `${name}: ${delivery[name]} events`)
}

function judgeHoldings({ samples, first, last, endedByItself }: Evidence): string[] {
  const { warnings } = afterWarmUp(samples).at(-1)!.service
  return [
    ...moreOf('handles', first.handles, last.handles),
    ...moreOf('listeners', first.listeners, last.listeners),
    ...(warnings > 0 ? [`warnings: ${warnings} of the process`] : []),
    ...(endedByItself ? [] : ['handles: something kept the process alive after stop()']),
  ]
}

function moreOf(what: string, first: Counts, last: Counts): string[] {
  return Object.entries(last)
    .filter(([name, count]) => count > (first[name] ?? 0))
    .map(([name, count]) => `${what}: ${name} grew from ${first[name] ?? 0} to ${count}`)
}
