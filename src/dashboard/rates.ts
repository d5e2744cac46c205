// Rates and latencies from what instances report of themselves. A report counts from the start of its process, and is renewed
// with each beat, every ten seconds. So a rate is the difference between two beats of one instance, spread over the time
// between them, and holds until the next beat.
import type { Instance, InstanceReport } from '../store/outbox/control-store.ts'
import { LATENCY_BOUNDS } from '../upkeep/reporter.ts'
import type { Sample } from './api.ts'

/** A beat that is this late is missing: older rates no longer describe the present. */
const STALE_MS = 25_000

type Rates = Pick<Sample, 'immediate' | 'fallback' | 'failed' | 'latency'>

/** What an instance did between two beats. */
interface Interval {
  readonly seconds: number
  readonly immediate: number
  readonly fallback: number
  readonly failed: number
  readonly latency: readonly number[]
}

interface Followed {
  readonly seenAt: number
  readonly report: InstanceReport
  /** null: there was one beat only. */
  readonly interval: Interval | null
}

/** Remembers the last two beats of each instance. */
export class RateMeter {
  #followed: ReadonlyMap<string, Followed> = new Map()

  read(instances: readonly Instance[]): Rates {
    const before = this.#followed
    this.#followed = new Map(instances.map((one) => [one.id, follow(one, before.get(one.id))]))
    const alive = instances.filter(({ seenMsAgo }) => seenMsAgo <= STALE_MS)
    const intervals = alive.map(({ id }) => this.#followed.get(id)!.interval)
    const known = intervals.filter((interval) => interval !== null)
    if (known.length === 0 && alive.length > 0) {
      return { immediate: null, fallback: null, failed: null, latency: null }
    }
    const sum = (name: 'immediate' | 'fallback' | 'failed') =>
      known.reduce((total, interval) => total + interval[name] / interval.seconds, 0)
    return {
      immediate: sum('immediate'),
      fallback: sum('fallback'),
      failed: sum('failed'),
      latency: percentiles(known.map(({ latency }) => latency)),
    }
  }
}

function follow({ seenAt, report }: Instance, before: Followed | undefined): Followed {
  const at = seenAt.getTime()
  if (!before) return { seenAt: at, report, interval: null }
  if (at <= before.seenAt) return before
  return { seenAt: at, report, interval: between(before, at, report) }
}

function between(before: Followed, seenAt: number, after: InstanceReport): Interval {
  const { published, latency } = before.report
  return {
    seconds: (seenAt - before.seenAt) / 1_000,
    immediate: grown(published.immediate, after.published.immediate),
    fallback: grown(published.fallback, after.published.fallback),
    failed: grown(failuresOf(before.report), failuresOf(after)),
    latency: after.latency.map((count, n) => grown(latency[n] ?? 0, count)),
  }
}

/** Those that will be tried again, and those that were the last. */
function failuresOf({ failed, dead }: InstanceReport): number {
  return failed + dead
}

/** Counts of one instance only grow. */
function grown(from: number, to: number): number {
  return Math.max(0, to - from)
}

/** Of the counts by bucket of several instances; null when they are empty. */
export function percentiles(counts: readonly (readonly number[])[]): Sample['latency'] {
  const total = LATENCY_BOUNDS.map((_, n) => sumAt(counts, n))
  total.push(sumAt(counts, LATENCY_BOUNDS.length))
  const events = total.reduce((sum, count) => sum + count, 0)
  if (events === 0) return null
  const at = (share: number) => percentile(total, share * events)
  return { p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99) }
}

function sumAt(counts: readonly (readonly number[])[], n: number): number {
  return counts.reduce((sum, one) => sum + (one[n] ?? 0), 0)
}

/** As if the events of a bucket were spread evenly over it. Beyond the last bound there is nothing to go by but that bound. */
function percentile(counts: readonly number[], rank: number): number {
  let below = 0
  for (const [n, count] of counts.entries()) {
    if (count > 0 && below + count >= rank) {
      const from = LATENCY_BOUNDS[n - 1] ?? 0
      const to = LATENCY_BOUNDS[n] ?? from
      return from + ((to - from) * (rank - below)) / count
    }
    below += count
  }
  return LATENCY_BOUNDS.at(-1)!
}
