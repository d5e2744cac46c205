// Instances that stopped without deleting their row: killed, frozen, or cut off from the database. The row stays for an hour,
// but a restart must not look like trouble for as long. So it is a warning while no running instance sends the events of the
// lost one; if others send them, for ten minutes, or until an instance of the same kind has started since. That one may be
// lost later: it is judged by itself.
import { formatAge } from '../age.ts'
import { groupBy } from '../../runtime/group-by.ts'
import type { Instance } from '../../store/outbox/control-store.ts'
import type { Found } from './finding.ts'

const TROUBLE_MS = 600_000

/** As many are named. */
const NAMED = 3

type Verdict = 'uncovered' | 'missed' | 'replaced' | 'past'

const ORDER: readonly Verdict[] = ['uncovered', 'missed', 'replaced', 'past']

/** One finding for all of the same verdict. */
export function judgeLost(lost: readonly Instance[], running: readonly Instance[]): Found[] {
  const byVerdict = sortLost(lost, running)
  return ORDER.flatMap((verdict) => {
    const instances = byVerdict.get(verdict)
    return instances ? toFound(verdict, instances) : []
  })
}

/** Those whose loss is trouble still. */
export function findMissed(
  lost: readonly Instance[],
  running: readonly Instance[],
): readonly Instance[] {
  const byVerdict = sortLost(lost, running)
  return [...(byVerdict.get('uncovered') ?? []), ...(byVerdict.get('missed') ?? [])]
}

function sortLost(lost: readonly Instance[], running: readonly Instance[]) {
  const free = new Set([...running, ...lost])
  // The one that was lost last is the one that the newest instance replaces.
  const latestFirst = lost.toSorted((one, other) => one.seenMsAgo - other.seenMsAgo)
  return groupBy(latestFirst, (instance): Verdict => {
    if (!isCovered(instance, running)) return 'uncovered'
    const replacement = [...free].find((other) => replaces(other, instance))
    if (!replacement) return instance.seenMsAgo < TROUBLE_MS ? 'missed' : 'past'
    free.delete(replacement)
    return 'replaced'
  })
}

function toFound(verdict: Verdict, instances: readonly Instance[]): Found {
  return { kind: 'lost-instance', ...explain(verdict, instances) }
}

function explain(verdict: Verdict, instances: readonly Instance[]): Found {
  const base = describe(instances)
  const [its, process] = instances.length === 1 ? ['its', 'that process'] : ['their', 'them']
  if (verdict === 'uncovered') {
    const it = instances.length === 1 ? 'it' : 'them'
    return {
      severity: 'warning',
      message: `${base}, and no running instance sends ${its} events`,
      remedy: `look at ${process} and start ${it} again; ${its} events wait until then`,
    }
  }
  if (verdict === 'replaced') {
    const others = instances.length === 1 ? 'another instance has' : 'as many others have'
    return { severity: 'info', message: `${base}; ${others} started since`, remedy: null }
  }
  const why =
    instances.length === 1
      ? 'it was killed, is frozen or cannot reach the database: look at that process; it is listed for an hour'
      : 'they were killed, are frozen or cannot reach the database: look at them; they are listed for an hour'
  return {
    severity: verdict === 'missed' ? 'warning' : 'info',
    message: `${base}; other instances send ${its} events`,
    remedy: why,
  }
}

/** The latest first. */
function describe(instances: readonly Instance[]): string {
  const names = instances.slice(0, NAMED).map(({ workerId, host, pid }) => {
    return `${workerId} (host ${host}, pid ${pid})`
  })
  const ago = `${formatAge(instances[0]!.seenMsAgo)} ago`
  if (instances.length === 1) return `the instance ${names[0]} was last seen ${ago}`
  const more = instances.length > NAMED ? ` and ${instances.length - NAMED} more` : ''
  return `${instances.length} instances were lost, the last one ${ago}: ${names.join(', ')}${more}`
}

/** Whether the fallback of running instances takes all its topics. */
function isCovered({ publishers }: Instance, running: readonly Instance[]): boolean {
  const pollers = running.filter(({ poller }) => poller)
  return takes(
    pollers.flatMap((instance) => instance.publishers),
    publishers,
  )
}

function replaces(other: Instance, lost: Instance): boolean {
  if (other.startedAt < lost.seenAt) return false
  if (lost.immediate && !other.immediate) return false
  if (lost.poller && !other.poller) return false
  return takes(other.publishers, lost.publishers)
}

function takes(publishers: Instance['publishers'], wanted: Instance['publishers']): boolean {
  if (publishers.some(({ topics }) => topics === null)) return true
  const taken = new Set(publishers.flatMap(({ topics }) => topics ?? []))
  return wanted.every(({ topics }) => topics?.every((topic) => taken.has(topic)) ?? false)
}
