// The requests for events: those that a search finds, one with its history, its content, and failures in groups.
import { performance } from 'node:perf_hooks'
import type { EventDetail, EventSummary } from '../store/outbox/browse-store.ts'
import type { Instance } from '../store/outbox/control-store.ts'
import { holdsDeadLetters } from '../upkeep/seen-instances.ts'
import type { EventAnswer, EventContent, EventsAnswer, GroupsAnswer } from './api.ts'
import type { EventSearch } from './input.ts'
import type { ResolvedDashboardOptions } from './options.ts'
import { RefusedError } from './refusal.ts'
import { showDetail, showEvent, showGroup, toTime } from './shown.ts'
import { type DashboardSource, databaseTime } from './source.ts'

/** A search goes on for this long before it returns how far it has come. */
const SEARCH_MS = 150

export async function events(
  source: DashboardSource,
  { filter, limit, after }: EventSearch,
): Promise<EventsAnswer> {
  const { store, browse } = source
  const [nowMs, pauses, instances, { found, next }] = await Promise.all([
    databaseTime(source),
    store.control.pauses(),
    store.control.instances(),
    search(browse, { filter, limit, after }),
  ])
  return {
    now: toTime(nowMs),
    events: found.map((one) => showEvent(one, pauses, instances)),
    next,
    lookedUntil: next !== null && found.length < limit ? timeOf(next) : null,
  }
}

/** Page after page, as long as another one is likely to end in time. */
async function search(
  browse: DashboardSource['browse'],
  { filter, limit, after }: EventSearch,
): Promise<{ found: EventSummary[]; next: string | null }> {
  const endsAt = performance.now() + SEARCH_MS
  const found: EventSummary[] = []
  let longestMs = 0
  for (let from = after; ; ) {
    const askedAt = performance.now()
    const { events: page, next } = await browse.list({
      ...filter,
      limit: limit - found.length,
      after: from,
    })
    found.push(...page)
    const now = performance.now()
    longestMs = Math.max(longestMs, now - askedAt)
    if (next === null || found.length === limit || now + longestMs > endsAt) return { found, next }
    from = next
  }
}

/** The time in an id; null if it is no UUIDv7. */
function timeOf(id: string): string | null {
  if (id[14] !== '7') return null
  return toTime(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16))
}

export async function event(source: DashboardSource, id: string): Promise<EventAnswer> {
  const { store, browse } = source
  const [found, pauses, instances, nowMs] = await Promise.all([
    browse.show(id),
    store.control.pauses(),
    store.control.instances(),
    databaseTime(source),
  ])
  if (!found) throw noEvent(id)
  const behind = aheadOf(source, found, instances)
  return showDetail({ ...found, behind }, pauses, instances, toTime(nowMs))
}

/** What it waits for. Dead letters are among it unless it is known that they hold nothing. */
function aheadOf(
  { deadLettersHold }: DashboardSource,
  { behind }: EventDetail,
  instances: readonly Instance[],
): EventDetail['behind'] {
  const others = behind.filter(({ status }) => status !== 'dead_letter')
  if (others.length === behind.length) return behind
  const holds = deadLettersHold ?? holdsDeadLetters(instances)
  return holds === false ? others : behind
}

export async function content(
  { browse, logger }: DashboardSource,
  id: string,
  redact: ResolvedDashboardOptions['redact'],
): Promise<EventContent> {
  const found = await browse.show(id)
  if (!found) throw noEvent(id)
  const { type, topic, payload, headers } = found
  if (!redact) return { payload, headers, isRedacted: false }
  try {
    const shown = await redact({ type, topic, payload: JSON.parse(payload) as unknown, headers })
    const text = JSON.stringify(shown.payload) ?? 'null'
    return { payload: text, headers: { ...shown.headers }, isRedacted: true }
  } catch (error) {
    logger.error({ err: error, type, topic }, 'redact of the dashboard failed, so nothing is shown')
    throw new RefusedError(500, 'REDACT_FAILED', 'the redaction failed, so nothing is shown')
  }
}

function noEvent(id: string): RefusedError {
  return new RefusedError(404, 'NO_EVENT', `there is no event ${id}; it may have been deleted`)
}

export async function groups(source: DashboardSource): Promise<GroupsAnswer> {
  const [found, nowMs] = await Promise.all([source.failures.groups(), databaseTime(source)])
  return { now: toTime(nowMs), groups: found.map(showGroup) }
}
