// Which instances run and which are lost, and what the running ones cannot reach. For the doctor and `aftercommit status`.
import { formatAge } from './age.ts'
import { groupBy } from '../runtime/group-by.ts'
import type { Instance, OpenCircuit } from '../store/outbox/control-store.ts'
import type { TableStats } from '../store/outbox/outbox-store.ts'

/** An instance beats every ten seconds. Unseen for longer than this, it was killed, is frozen or is cut off. */
const UNSEEN_MS = 60_000

/** Two beats did not come. */
const LATE_BEAT_MS = 25_000

/** Those that beat, and those that stopped without deleting their row. */
export function splitBySeen(
  instances: readonly Instance[],
): [running: Instance[], lost: Instance[]] {
  return [instances.filter((instance) => !isLost(instance)), instances.filter(isLost)]
}

export function isLost({ seenMsAgo }: Instance): boolean {
  return isUnseen(seenMsAgo)
}

/** Not lost yet: it may be slow, or stuck. */
export function isLate({ seenMsAgo }: Instance): boolean {
  return seenMsAgo > LATE_BEAT_MS && !isUnseen(seenMsAgo)
}

export function isUnseen(seenMsAgo: number): boolean {
  return seenMsAgo > UNSEEN_MS
}

/** Whether dead letters hold back what follows them, as the running instances are set; null if none says so. */
export function holdsDeadLetters(instances: readonly Instance[]): boolean | null {
  const [running] = splitBySeen(instances)
  const set = running.flatMap(({ settings: { onDeadLetter } }) => onDeadLetter ?? [])
  return set.length === 0 ? null : set.includes('hold')
}

/** A destination that one or more running instances cannot reach. */
export interface Unreached extends Pick<OpenCircuit, 'publisher' | 'topic' | 'error'> {
  readonly instances: number
  /** For the instance that has been without it for longest. */
  readonly forMs: number
  /** False: nothing waits for the topic any more, so that no instance tries it, and each forgets it within a minute. */
  readonly isWaitedFor: boolean
}

/**
 * Each destination once, the one that has been out of reach for longest first. `waiting`: the topics with unfinished events;
 * null if they are not known.
 */
export function findUnreached(
  running: readonly Instance[],
  waiting: TableStats['topics'] | null,
): Unreached[] {
  const open = running.flatMap(({ report, seenMsAgo }) =>
    report.circuits.map((circuit) => ({ ...circuit, forMs: circuit.forMs + seenMsAgo })),
  )
  const byDestination = groupBy(open, ({ publisher, topic }) => JSON.stringify([publisher, topic]))
  const found = [...byDestination.values()].map((circuits) => {
    const [longest] = circuits.toSorted((one, other) => other.forMs - one.forMs)
    const { topic } = longest!
    const isWaitedFor = topic === null || waiting === null || Object.hasOwn(waiting, topic)
    return { ...longest!, instances: circuits.length, isWaitedFor }
  })
  return found.toSorted((one, other) => other.forMs - one.forMs)
}

export function describeUnreached(
  { instances, isWaitedFor, ...circuit }: Unreached,
  running: number,
): string {
  if (!isWaitedFor) return `${nameDestination(circuit)} was out of reach; ${NOTHING_WAITS}`
  return describeCircuit(circuit, ` in ${instances} of ${running} running instances`)
}

export const NOTHING_WAITS = 'nothing waits for it any more, so this clears within a minute'

export function describeCircuit({ forMs, error, ...destination }: OpenCircuit, where = ''): string {
  return `${nameDestination(destination)} has been out of reach for ${formatAge(forMs)}${where}: ${error}`
}

/** What an event of a topic waits for, if a running instance that publishes the topic reports it out of reach. */
export function waitsFor(topic: string, running: readonly Instance[]): 'topic' | 'broker' | null {
  const open = running.flatMap(({ publishers, report }) =>
    report.circuits.filter((circuit) => {
      if (circuit.topic !== null) return circuit.topic === topic
      const ofTopic = publishers.find(({ topics }) => topics?.includes(topic))
      const publisher = ofTopic ?? publishers.find(({ topics }) => topics === null)
      return publisher?.name === circuit.publisher
    }),
  )
  if (open.length === 0) return null
  return open.some((circuit) => circuit.topic === null) ? 'broker' : 'topic'
}

/** Such as `the topic 'orders' of the publisher 'kafka'`. */
function nameDestination({ publisher, topic }: Pick<OpenCircuit, 'publisher' | 'topic'>) {
  const what = topic === null ? 'the broker' : `the topic '${topic}'`
  return `${what} of the publisher '${publisher}'`
}
