// How what the store returns is shown: dates become texts, and neither payload nor header is among it.
import type { EventDetail, EventSummary } from '../store/outbox/browse-store.ts'
import type { Instance, Pause } from '../store/outbox/control-store.ts'
import type { FailureGroup } from '../store/outbox/failure-store.ts'
import { findMissed } from '../upkeep/doctor/lost-instances.ts'
import { isLate, isLost, splitBySeen, waitsFor } from '../upkeep/seen-instances.ts'
import type { EventAnswer, EventShown, GroupShown, InstanceShown, PauseShown } from './api.ts'

export function toTime(ms: number): string {
  return new Date(ms).toISOString()
}

export function showPause({ topic, since, by, reason }: Pause): PauseShown {
  return { topic, since: since.toISOString(), by, reason }
}

export function showEvent(
  event: EventSummary,
  pauses: readonly Pause[],
  instances: readonly Instance[],
): EventShown {
  const { createdAt, availableAt, publishedAt, deliverAt, status, topic } = event
  const isUnfinished = status === 'pending' || status === 'failed'
  return {
    id: event.id,
    seq: event.seq,
    status,
    type: event.type,
    aggregateType: event.aggregateType,
    aggregateId: event.aggregateId,
    topic,
    attempts: event.attempts,
    maxAttempts: event.maxAttempts,
    createdAt: createdAt.toISOString(),
    availableAt: availableAt.toISOString(),
    publishedAt: publishedAt?.toISOString() ?? null,
    deliverAt: deliverAt?.toISOString() ?? null,
    workerId: event.workerId,
    isLeased: event.isLeased,
    isPaused: isUnfinished && pauses.some((pause) => pause.topic === null || pause.topic === topic),
    waitsFor: isUnfinished ? waitsFor(topic, splitBySeen(instances)[0]) : null,
    error: event.error,
  }
}

export function showDetail(
  event: EventDetail,
  pauses: readonly Pause[],
  instances: readonly Instance[],
  now: string,
): EventAnswer {
  return {
    ...showEvent(event, pauses, instances),
    now,
    lane: String(event.lane),
    occurredAt: event.occurredAt.toISOString(),
    updatedAt: event.updatedAt.toISOString(),
    lastAttemptAt: event.lastAttemptAt?.toISOString() ?? null,
    behind: event.behind,
  }
}

export function showGroup({ firstAt, lastAt, ...group }: FailureGroup): GroupShown {
  return { ...group, firstAt: firstAt.toISOString(), lastAt: lastAt.toISOString() }
}

/** Those that are missed first, and those that are gone last. `agoMs`: how long ago they were read. */
export function showInstances(instances: readonly Instance[], agoMs: number): InstanceShown[] {
  const [running, lost] = splitBySeen(instances)
  const missed = findMissed(lost, running)
  const gone = lost.filter((instance) => !missed.includes(instance))
  return [...missed, ...running, ...gone].map((instance) =>
    showInstance(instance, agoMs, missed.includes(instance)),
  )
}

function showInstance(instance: Instance, agoMs: number, isMissed: boolean): InstanceShown {
  const { seenMsAgo, report } = instance
  const { inFlight, circuits } = report
  const ageMs = seenMsAgo + agoMs
  return {
    id: instance.id,
    workerId: instance.workerId,
    host: instance.host,
    pid: instance.pid,
    version: instance.version,
    startedAt: instance.startedAt.toISOString(),
    seenMsAgo: ageMs,
    isLate: isLate(instance),
    isLost: isLost(instance),
    isMissed,
    publishers: instance.publishers,
    immediate: instance.immediate,
    poller: instance.poller,
    inFlight,
    circuits: circuits.map((circuit) => ({ ...circuit, forMs: circuit.forMs + ageMs })),
  }
}
