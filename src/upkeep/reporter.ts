// What this instance has done since it started, and what is out of its reach. Each beat writes it to the instance's row, so
// that the CLI and the dashboard see all instances from anywhere. Only listens; a crash forgets it.
import { performance } from 'node:perf_hooks'
import type { Unreachable } from '../delivery/circuits.ts'
import { describeError } from '../errors.ts'
import type { Lifecycle } from '../lifecycle.ts'
import type { InstanceReport } from '../store/outbox/control-store.ts'
import { BUCKETS } from '../telemetry/metrics.ts'
import type { PublisherActivity } from '../telemetry/telemetry.ts'

/** Upper bounds in milliseconds. */
export const LATENCY_BOUNDS: readonly number[] = BUCKETS.map((seconds) => seconds * 1_000)

/** The row is read by people, and written every ten seconds. */
const LONGEST_ERROR = 500
const MOST_CIRCUITS = 50

export interface ReporterParts {
  readonly lifecycle: Lifecycle
  readonly delivery: {
    unreachable(): readonly Unreachable[]
    activity(): readonly PublisherActivity[]
  }
}

export class Reporter {
  readonly #delivery: ReporterParts['delivery']
  readonly #published = { immediate: 0, fallback: 0 }
  #failed = 0
  #dead = 0
  #duplicates = 0
  readonly #latency = Array.from({ length: LATENCY_BOUNDS.length + 1 }, () => 0)

  constructor({ lifecycle, delivery }: ReporterParts) {
    this.#delivery = delivery
    const { events } = lifecycle
    events.on('event:published', ({ path, latencyMs }) => {
      this.#published[path] += 1
      if (latencyMs !== null) this.#latency[bucketOf(latencyMs)]! += 1
    })
    events.on('event:failed', () => void (this.#failed += 1))
    events.on('event:dead', () => void (this.#dead += 1))
    events.on('event:duplicate', () => void (this.#duplicates += 1))
  }

  report(): InstanceReport {
    const now = performance.now()
    const held = this.#delivery.activity().map(({ inFlight }) => inFlight)
    return {
      inFlight: held.reduce((sum, one) => sum + one, 0),
      circuits: this.#delivery
        .unreachable()
        .slice(0, MOST_CIRCUITS)
        .map(({ publisher, topic, since, error }) => ({
          publisher,
          topic,
          forMs: Math.round(now - since),
          error: describeError(error).slice(0, LONGEST_ERROR),
        })),
      published: { ...this.#published },
      failed: this.#failed,
      dead: this.#dead,
      duplicates: this.#duplicates,
      latency: [...this.#latency],
    }
  }
}

/** The place in LATENCY_BOUNDS of the first bound that is not exceeded; one more for none. */
export function bucketOf(ms: number): number {
  const found = LATENCY_BOUNDS.findIndex((bound) => ms <= bound)
  return found === -1 ? LATENCY_BOUNDS.length : found
}
