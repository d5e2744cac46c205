// An instance as its row describes it.
import type { Instance, InstanceReport } from '../../../src/index.ts'
import { LATENCY_BOUNDS } from '../../../src/upkeep/reporter.ts'

type Given = Partial<Omit<Instance, 'report'>> & { report?: Partial<InstanceReport> }

export function sampleInstance({ report = {}, ...given }: Given = {}): Instance {
  return {
    id: '01900000-0000-7000-8000-000000000001',
    workerId: 'worker-1',
    host: 'host-1',
    pid: 42,
    version: '0.1.0',
    startedAt: new Date('2026-01-01T00:00:00Z'),
    seenAt: new Date('2026-01-01T01:00:00Z'),
    seenMsAgo: 1_000,
    publishers: [{ name: 'kafka', topics: null }],
    immediate: true,
    poller: true,
    settings: {},
    ...given,
    report: {
      inFlight: 0,
      circuits: [],
      published: { immediate: 0, fallback: 0 },
      failed: 0,
      dead: 0,
      duplicates: 0,
      latency: Array.from({ length: LATENCY_BOUNDS.length + 1 }, () => 0),
      ...report,
    },
  }
}

export function sampleStats() {
  return {
    pending: { count: 0, exact: true },
    dead: { count: 0, exact: true },
    published: { count: 0, exact: true },
    scheduled: { count: 0, exact: true },
    due: 0,
    retrying: 0,
    held: 0,
    mostAttempts: 0,
    lagMs: null,
    topics: {},
    latency: {},
  }
}
