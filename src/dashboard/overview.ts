// The response that the page polls: the state of the outbox, from the sampler's last look.
import type { TableStats } from '../store/outbox/outbox-store.ts'
import { blockedBy } from '../upkeep/doctor/locks.ts'
import type { Person } from './access.ts'
import type { Overview } from './api.ts'
import type { Checkup } from './checkup.ts'
import { findTroubles } from './findings.ts'
import { readQuery } from './input.ts'
import { badRequest } from './refusal.ts'
import { SAMPLE_MS, type Sampler } from './sampler.ts'
import { showInstances, showPause, toTime } from './shown.ts'
import { type DashboardSource, retentionOf } from './source.ts'

export async function overview(
  source: DashboardSource,
  { sampler, checkup }: { readonly sampler: Sampler; readonly checkup: Checkup },
  person: Person,
  url: URL,
): Promise<Overview> {
  const { table, doctor, types } = source
  const since = readSince(url)
  const seen = await sampler.seen()
  const { stats, agoMs, instances, pauses } = seen
  const retention = retentionOf(source, instances)
  const locks = seen.isLocked ? blockedBy(await doctor.blockers()) : []
  const { pending, dead, published, due, retrying, held, lagMs, latency } = stats
  return {
    now: toTime(seen.clockMs + agoMs),
    table: `${table.schema}.${table.name}`,
    acting: person.mayAct ? { by: person.by } : null,
    retention: retention && {
      publishedMs: retention.retentionMs,
      deadMs: retention.deadLetterRetentionMs,
      isOfInstances: source.retention === null,
    },
    findings: findTroubles(seen, locks, checkup.findings()),
    pending,
    dead,
    published,
    due,
    retrying,
    held,
    oldestMs: lagMs === null ? null : lagMs + agoMs,
    topics: backlogs(stats.topics, agoMs),
    latency: Object.entries(latency).map(([type, ofType]) => ({ type, ...ofType })),
    types: [...new Set([...types, ...Object.keys(latency)])].toSorted().slice(0, MOST_TYPES),
    pauses: pauses.map(showPause),
    instances: showInstances(instances, agoMs),
    sampleMs: SAMPLE_MS,
    samples: sampler.samples(since),
  }
}

const MOST_TOPICS = 100
const MOST_TYPES = 1_000

function backlogs(topics: TableStats['topics'], agoMs: number): Overview['topics'] {
  return Object.entries(topics)
    .map(([topic, { pending, lagMs }]) => ({ topic, pending, oldestMs: lagMs + agoMs }))
    .toSorted((one, other) => other.pending.count - one.pending.count)
    .slice(0, MOST_TOPICS)
}

/** The time of the last sample that the page has. */
function readSince(url: URL): number | null {
  const { since } = readQuery(url, ['since'])
  if (since === undefined) return null
  if (/^\d{1,15}$/.test(since)) return Number(since)
  throw badRequest('since must be the time of a sample, in milliseconds')
}
