// Whether the soak was survived: what failed, and what this run was too short to tell. Times are told, never
// judged.
import type { Verdict as Delivery } from '../torture/oracle.ts'
import { judgeClaims, judgeSize, SHORTEST_PHASE_SECONDS, type SizeVerdict } from './bounds.ts'
import type { Phase } from './phases.ts'
import type { Counts } from './resources.ts'
import { mbPerMinute, type Sample } from './samples.ts'
import type { Look, Tally } from './service.ts'
import { STEPS } from './table-watch.ts'

export interface Evidence {
  readonly phases: readonly Phase[]
  readonly samples: readonly Sample[]
  readonly first: Look
  readonly last: Look
  /** Of the whole run, counted when everything that was begun was over. */
  readonly tally: Tally
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

/** Of the units that were due; with more of them missing the load was not the one that was asked for. */
const MOST_MISSED = 0.01

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
    ...judgeLoad(evidence.tally),
    ...judgeHoldings(evidence),
    ...STEPS.filter((step) => !samples.at(-1)!.statements[step]).map(
      (step) => `statements: ${step} was not found among those that Postgres counted`,
    ),
  ]
  const notJudged: string[] = []

  const [, steady] = phases
  if (steady!.seconds * 3 >= SHORTEST_FIT_SECONDS) {
    for (const name of ['heap', 'external', 'rss'] as const) {
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

/** Without this a service that did next to nothing would pass as steady. */
function judgeLoad(tally: Tally): string[] {
  const { committed, rolledBack, failed, missed, errors, warnings } = tally
  const due = committed + rolledBack + failed + missed
  const failures: string[] = []
  if (failed > 0) failures.push(`failed: ${failed} of ${due} units of work`)
  if (missed > due * MOST_MISSED) {
    failures.push(`missed: ${missed} of ${due} units of work, more than ${MOST_MISSED * 100} %`)
  }
  if (errors > 0) failures.push(`errors: ${errors} background steps failed`)
  if (warnings > 0) failures.push(`warnings: ${warnings} of the process`)
  return failures
}

function judgeHoldings({ first, last, endedByItself }: Evidence): string[] {
  return [
    ...moreOf('handles', first.handles, last.handles),
    ...moreOf('listeners', first.listeners, last.listeners),
    ...(endedByItself ? [] : ['handles: something kept the process alive after stop()']),
  ]
}

function moreOf(what: string, first: Counts, last: Counts): string[] {
  return Object.entries(last)
    .filter(([name, count]) => count > (first[name] ?? 0))
    .map(([name, count]) => `${what}: ${name} grew from ${first[name] ?? 0} to ${count}`)
}
