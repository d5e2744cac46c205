// An event as one row of a table, for list, show and tail, and what happens to it next.
import type { EventStatus } from '../../event/event.ts'
import type { EventSummary } from '../../store/outbox/browse-store.ts'
import type { ControlStore, Instance } from '../../store/outbox/control-store.ts'
import { isDenied } from '../../store/database.ts'
import { splitBySeen, waitsFor } from '../../upkeep/seen-instances.ts'
import type { Session } from '../context.ts'
import type { Output } from '../output/output.ts'
import { type Cells, printable, shorten } from '../output/table.ts'

const COLOURS = {
  scheduled: 'cyan',
  pending: 'yellow',
  failed: 'magenta',
  published: 'green',
  dead_letter: 'red',
} as const

const LONGEST_ERROR = 80

/** What relates an event to the rest of the outbox. */
export interface Surroundings {
  /** The database's clock, in ms. */
  readonly nowMs: number
  /** The instances that were seen lately. */
  readonly running: readonly Instance[]
}

export async function lookAround({ store, now }: Session): Promise<Surroundings> {
  const [nowMs, instances] = await Promise.all([now(), readInstances(store.control)])
  return { nowMs, running: splitBySeen(instances)[0] }
}

/** A role that only browses may not read them. */
async function readInstances(control: ControlStore): Promise<Instance[]> {
  try {
    return await control.instances()
  } catch (error) {
    if (isDenied(error)) return []
    throw error
  }
}

export function toCells(event: EventSummary, out: Output, around: Surroundings): Cells {
  const { nowMs } = around
  return {
    id: event.id,
    saved: out.time(event.createdAt, nowMs),
    status: colourStatus(event.status, out),
    type: printable(event.type),
    aggregate: printable(`${event.aggregateType} ${event.aggregateId}`),
    topic: printable(event.topic),
    attempts: `${event.attempts}/${event.maxAttempts}`,
    next: describeNext(event, out, around),
    error: shorten(event.error ?? '', LONGEST_ERROR),
  }
}

export function colourStatus(status: EventStatus, out: Output): string {
  return out.style(COLOURS[status], status)
}

/** When something happens to it next. */
export function describeNext(
  event: EventSummary,
  out: Output,
  { nowMs, running }: Surroundings,
): string {
  const { status, topic, availableAt, isLeased, isPaused, workerId } = event
  if (status === 'published' || status === 'dead_letter') return '-'
  if (isPaused) return 'paused'
  if (isLeased) return `held by ${printable(workerId ?? 'an instance')}`
  if (availableAt.getTime() > nowMs) return out.time(availableAt, nowMs)
  const unreached = waitsFor(topic, running)
  return unreached === null ? 'due' : `waits for the ${unreached}`
}
