// The requests that change something, and how many events each would touch. Each change logs who made it.
import { requireName, requireOneOf } from '../checks/checks.ts'
import { requireTexts } from '../checks/filter-values.ts'
import type { Count } from '../store/outbox/outbox-store.ts'
import { previewPurge } from '../upkeep/purge-preview.ts'
import { findTopics, isUnknownTopic } from '../upkeep/unknown-topic.ts'
import type { Person } from './access.ts'
import type { Changed, PauseAnswer, Preview, Rerouted } from './api.ts'
import { readBody, readSelection, toDate, toTopic } from './input.ts'
import { RefusedError } from './refusal.ts'
import type { Sampler } from './sampler.ts'
import { showPause, toTime } from './shown.ts'
import type { Retention } from './acts.ts'
import { type DashboardSource, databaseTime, retentionOf } from './source.ts'

/** Counting stops at this many events, */
const COUNTED = 100_000
/** or after this time; what is deleted for good may take longer to count. */
const COUNT_MS = { retry: 500, discard: 2_000 }

export async function preview(source: DashboardSource, request: Request): Promise<Preview> {
  const { act, selection, topic } = await readBody(request, ['act', 'selection', 'topic'])
  requireOneOf<unknown>('act', act, ['retry', 'discard', 'purge', 'pause', 'reroute'])
  // What fails from here on is not counted, so it is not changed either, however long the person thinks.
  const asOf = new Date(await databaseTime(source))
  const count = (): Promise<Count> => {
    if (act === 'purge') return countOld(source)
    if (act === 'pause') return source.preview.countWaiting(toTopic(topic), COUNTED)
    if (act === 'reroute') return source.preview.countWaiting(requireName('topic', topic), COUNTED)
    const within = COUNT_MS[act === 'discard' ? 'discard' : 'retry']
    return source.failures.count(readSelection(selection, asOf), { within })
  }
  const counted = await count()
  const name = act === 'pause' ? toTopic(topic) : null
  const isUnknown = name !== null && counted.count === 0 && (await isUnknownTopic(source, name))
  const topics = act === 'reroute' ? await findTopics(source.store) : null
  return {
    ...counted,
    asOf: toTime(asOf.getTime()),
    ...(isUnknown && { isUnknownTopic: true }),
    ...(topics && { topics }),
  }
}

async function countOld(source: DashboardSource): Promise<Count> {
  const { store, preview: counts } = source
  const { published, deadLetters } = await previewPurge(
    { partitions: store.partitions, preview: counts },
    await requireRetention(source),
    COUNTED,
  )
  return {
    count: published.count + deadLetters.count,
    exact: published.exact && deadLetters.exact,
  }
}

export async function change(
  { acts }: DashboardSource,
  act: 'retry' | 'discard',
  request: Request,
  person: Person,
): Promise<Changed> {
  const { selection, asOf } = await readBody(request, ['selection', 'asOf'])
  const filter = readSelection(selection, toDate('asOf', asOf))
  return { count: await acts.failures[act](filter, who(person)) }
}

export async function purge(
  source: DashboardSource,
  request: Request,
  person: Person,
): Promise<Changed> {
  await readBody(request, [])
  return { count: await source.acts.purge(await requireRetention(source), who(person)) }
}

async function requireRetention(source: DashboardSource): Promise<Retention> {
  const instances = source.retention ? [] : await source.store.control.instances()
  const retention = retentionOf(source, instances)
  if (retention) return retention
  throw new RefusedError(
    409,
    'NO_RETENTION',
    'neither this server nor an instance says how long to keep events; start the server with --purge-older-than, or run aftercommit purge',
  )
}

export async function moveEvents(
  { acts }: DashboardSource,
  request: Request,
  person: Person,
): Promise<Rerouted> {
  const { from, to } = await readBody(request, ['from', 'to'])
  return await acts.reroute(from as string, to as string, who(person))
}

export async function pause(
  { acts, store }: DashboardSource,
  sampler: Sampler,
  request: Request,
  person: Person,
): Promise<PauseAnswer> {
  const { topic, reason } = await readBody(request, ['topic', 'reason'])
  requireTexts({ reason })
  const details = {
    ...who(person),
    ...(typeof reason === 'string' && reason !== '' && { reason }),
  }
  const changed = await acts.pause(toTopic(topic), details)
  return await pausesNow(store, sampler, changed)
}

export async function resume(
  { acts, store }: DashboardSource,
  sampler: Sampler,
  request: Request,
  person: Person,
): Promise<PauseAnswer> {
  const { topic } = await readBody(request, ['topic', 'reason'])
  const changed = await acts.resume(toTopic(topic), who(person))
  return await pausesNow(store, sampler, changed)
}

async function pausesNow(
  { control }: DashboardSource['store'],
  sampler: Sampler,
  changed: boolean,
): Promise<PauseAnswer> {
  const pauses = await control.pauses()
  sampler.learn(pauses)
  return { changed, pauses: pauses.map(showPause) }
}

function who({ by }: Person): { by?: string } {
  return by === null ? {} : { by }
}
