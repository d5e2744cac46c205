// What is not as it should be, at a glance: from one look, without a further statement. The doctor looks deeper.
import { formatAge } from '../upkeep/age.ts'
import type { Found as FoundLock } from '../upkeep/doctor/finding.ts'
import { judgeLost } from '../upkeep/doctor/lost-instances.ts'
import { findUnreached, NOTHING_WAITS, splitBySeen } from '../upkeep/seen-instances.ts'
import { LATE_MS } from '../upkeep/late.ts'
import type { Finding } from './api.ts'
import { queryOf, REMEDIES, toSentence } from './remedies.ts'
import type { Seen } from './sampler.ts'

type Found = Omit<Finding, 'kind'>

const CHECKS: readonly (readonly [kind: string, find: (seen: Seen) => readonly Found[]])[] = [
  ['database', findSilence],
  ['no-instance', findNoInstance],
  ['circuit', findCircuits],
  ['lag', findLag],
  ['dead', findDead],
  ['lost-instance', findLost],
  ['paused', findPauses],
]

/**
 * The worst first. `locks`: who holds a lock on the table, if one kept us from it. `checked`: what the doctor has found
 * besides what is seen here.
 */
export function findTroubles(
  seen: Seen,
  locks: readonly FoundLock[],
  checked: readonly Finding[],
): Finding[] {
  const glanced = CHECKS.flatMap(([kind, find]) => find(seen).map((one) => ({ kind, ...one })))
  const found = [...glanced, ...checked]
  const held = locks.map((lock) => toLock(lock, seen))
  return [
    ...held,
    ...found.filter(({ severity }) => severity === 'error'),
    ...found.filter(({ severity }) => severity === 'warning'),
    ...found.filter(({ severity }) => severity === 'info'),
  ]
}

function toLock({ severity, message, remedy }: FoundLock, { agoMs }: Seen): Finding {
  return {
    severity,
    kind: 'lock',
    what: `${toSentence(message)} The figures are ${formatAge(agoMs)} old.`,
    remedy: remedy && toSentence(remedy),
    link: { to: 'doctor', query: '' },
  }
}

function findSilence({ lateMs, agoMs }: Seen): Found[] {
  if (lateMs === 0) return []
  return [
    {
      severity: 'error',
      what: `The database has not responded for ${formatAge(lateMs)}; the figures are ${formatAge(agoMs)} old.`,
      remedy: 'Look at the load of the database server.',
      link: { to: 'doctor', query: '' },
    },
  ]
}

function findNoInstance({ instances, stats }: Seen): Found[] {
  if (stats.pending.count === 0) return []
  const [alive] = splitBySeen(instances)
  if (alive.some(({ poller }) => poller)) return []
  const what =
    alive.length === 0
      ? 'no instance is running'
      : `none of the ${alive.length} running instances runs the fallback`
  return [
    {
      severity: 'error',
      what: `${waiting(stats.pending)}, and ${what}.`,
      ...REMEDIES['no-instance'],
    },
  ]
}

function findCircuits({ instances, stats }: Seen): Found[] {
  const [alive] = splitBySeen(instances)
  return findUnreached(alive, stats.topics).map((unreached) => {
    const { publisher, topic, forMs, error, instances: count, isWaitedFor } = unreached
    const what =
      topic === null ? `The broker of ${publisher}` : `The topic ${topic} of ${publisher}`
    if (!isWaitedFor) {
      return {
        severity: 'info',
        what: `${what} was out of reach; ${NOTHING_WAITS}.`,
        remedy: null,
        link: { to: 'instances', query: '' },
      }
    }
    const where = `in ${count} of ${alive.length} running instances`
    return {
      severity: 'error',
      what: `${what} has been out of reach for ${formatAge(forMs)} ${where}: ${error}`,
      remedy:
        topic === null
          ? 'Check that the broker runs and can be reached. Events wait, and go out by themselves once it is back.'
          : 'Check that the topic exists and that the application may write to it. Its events wait, and go out by themselves. If the name is mistyped, correct it in the application and move the events.',
      link:
        topic === null
          ? { to: 'instances', query: '' }
          : { to: 'events', query: queryOf({ topic, status: 'pending,failed' }) },
      ...(topic !== null && { move: topic }),
    }
  })
}

function findLag({ stats, pauses }: Seen): Found[] {
  const { lagMs } = stats
  if (lagMs === null || lagMs <= LATE_MS) return []
  const paused = pauses.length > 0 ? ' A pause may be the reason.' : ''
  return [
    {
      severity: 'warning',
      what: `The oldest unsent event has waited for ${formatAge(lagMs)}.${paused}`,
      ...REMEDIES.lag,
    },
  ]
}

function findDead({ stats: { dead } }: Seen): Found[] {
  if (dead.count === 0) return []
  const count = `${dead.exact ? '' : 'at least '}${dead.count.toLocaleString('en')}`
  return [
    {
      severity: 'warning',
      what: `There ${dead.count === 1 ? 'is 1 dead letter' : `are ${count} dead letters`}.`,
      ...REMEDIES.dead,
    },
  ]
}

/** Leaves out instances that were replaced, or whose work others took over long ago. */
function findLost({ instances }: Seen): Found[] {
  const [running, lost] = splitBySeen(instances)
  return judgeLost(lost, running)
    .filter(({ severity }) => severity !== 'info')
    .map(({ severity, message, remedy }) => ({
      severity,
      what: toSentence(message),
      remedy: remedy && toSentence(remedy),
      link: { to: 'instances', query: '' },
    }))
}

function findPauses({ pauses, clockMs }: Seen): Found[] {
  return pauses.map(({ topic, since, by, reason }) => {
    const what = topic === null ? 'Everything is' : `The topic ${topic} is`
    const who = `${by === null ? '' : ` by ${by}`}${reason === null ? '' : ` (${reason})`}`
    const age = formatAge(Math.max(0, clockMs - since.getTime()))
    return {
      severity: 'warning',
      what: `${what} paused${who}, for ${age} now.`,
      ...REMEDIES.paused,
    }
  })
}

function waiting({ count, exact }: { readonly count: number; readonly exact: boolean }): string {
  if (count === 1) return '1 event waits'
  return `${exact ? '' : 'At least '}${count.toLocaleString('en')} events wait`
}
