// Counts what the outbox says about itself while it runs. The live view shows this; the final verdict
// does not believe it (see oracle.ts).
import { performance } from 'node:perf_hooks'
import type { OutboxEvents, Path } from 'aftercommit'

export interface Bucket {
  immediate: number
  fallback: number
}

export interface Tally {
  committed: number
  dead: number
  /** Milliseconds from commit to ack, by the path that delivered. */
  readonly latencies: Record<Path, number[]>
  /** What was published in each half second since the first commit. */
  readonly buckets: Bucket[]
  /** null while every destination is in reach. */
  circuit: { openedAt: number; probes: number } | null
}

export const BUCKET_MS = 500

export function tallyEvents(events: OutboxEvents): Tally {
  const tally: Tally = {
    committed: 0,
    dead: 0,
    latencies: { immediate: [], fallback: [] },
    buckets: [],
    circuit: null,
  }
  const committedAt = new Map<string, number>()
  let firstAt: number | null = null

  events.on('event:saved', ({ event }) => {
    const now = performance.now()
    firstAt ??= now
    tally.committed += 1
    committedAt.set(event.id, now)
  })

  events.on('event:published', ({ event, path, latencyMs }) => {
    const now = performance.now()
    const since = committedAt.get(event.id)
    // Signalled a second time: a late ack of an event that the other path has sent meanwhile.
    if (since === undefined || firstAt === null) return
    committedAt.delete(event.id)
    // The poller does not know when an event was committed. This signal comes once the ack is recorded,
    // so what is measured here is a few milliseconds too long, never too short.
    tally.latencies[path].push(latencyMs ?? now - since)
    const bucket = Math.floor((now - firstAt) / BUCKET_MS)
    while (tally.buckets.length <= bucket) tally.buckets.push({ immediate: 0, fallback: 0 })
    tally.buckets[bucket]![path] += 1
  })

  events.on('event:dead', () => {
    tally.dead += 1
  })

  // Topic and broker circuits in one: the demo has one topic, so either of them stops everything.
  const open = new Set<string | null>()
  events.on('circuit:open', ({ topic }) => {
    open.add(topic)
    tally.circuit ??= { openedAt: performance.now(), probes: 0 }
  })
  events.on('circuit:half-open', () => {
    if (tally.circuit) tally.circuit.probes += 1
  })
  events.on('circuit:closed', ({ topic }) => {
    open.delete(topic)
    if (open.size === 0) tally.circuit = null
  })
  return tally
}

/** The nearest rank; null when there is nothing to rank. */
export function percentile(values: readonly number[], percent: number): number | null {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? null
}
