// Events that wait for something that will not come by itself: no instance sends them, their topic is paused, or they
// are dead.
import { formatAge } from '../age.ts'
import type { Instance } from '../../store/outbox/control-store.ts'
import type { Check, DoctorParts, Found } from './finding.ts'
import { splitBySeen } from '../seen-instances.ts'

/** Counted no further. */
const COUNTED = 10_000

const START_ONE =
  'start an instance with poller: true, or aftercommit relay with your publishers, handlers included'

export const waitingCheck: Check = {
  name: 'waiting events',
  readsEvents: true,
  async run(parts) {
    const { store, limits } = parts
    const [running] = splitBySeen(await store.control.instances())
    const unsent = await findUnsent(parts, running)
    const { lagMs, pending } = await store.stats()
    if (running.length === 0 && unsent.length === 0 && pending.count > 0) {
      const events = `${pending.exact ? '' : 'at least '}${pending.count} ${pending.count === 1 ? 'event waits' : 'events wait'}`
      const message = `${events}, and no instance runs`
      unsent.push({ kind: 'no-instance', severity: 'error', message, remedy: START_ONE })
    }
    if (lagMs === null || lagMs <= limits.lagMs) return unsent
    return [
      ...unsent,
      {
        kind: 'lag',
        severity: 'warning',
        message: `the oldest unsent event has waited for ${formatAge(lagMs)}`,
        remedy:
          'aftercommit list --status pending --oldest and aftercommit groups show what waits, and for what',
      },
    ]
  },
}

/** Due events that no running instance would send. */
async function findUnsent({ store }: DoctorParts, running: readonly Instance[]): Promise<Found[]> {
  const pollers = running.filter(({ poller }) => poller)
  const publishers = pollers.flatMap((instance) => instance.publishers)
  if (publishers.some(({ topics }) => topics === null)) return []
  const routed = publishers.flatMap(({ topics }) => topics ?? [])
  const unsent = Object.entries(await store.countUnrouted(routed, COUNTED))
  return unsent.map(([topic, count]) => {
    const events = `${count === COUNTED ? 'at least ' : ''}${count} ${count === 1 ? 'event is' : 'events are'} due for the topic '${topic}'`
    return pollers.length === 0
      ? {
          kind: 'no-instance',
          severity: 'error',
          message: `${events}, and no instance that was seen lately runs the fallback`,
          remedy: START_ONE,
        }
      : {
          kind: 'unrouted',
          severity: 'error',
          message: `${events}, which no running instance publishes`,
          remedy: `add the topic to the routes of routerPublisher(), or set its option 'otherwise'; if the name of the topic is wrong, aftercommit reroute '${topic}' <topic> moves its events`,
        }
  })
}

export const pausesCheck: Check = {
  name: 'pauses',
  async run({ store }, { server }) {
    const pauses = await store.control.pauses()
    return pauses.map(({ topic, since, by, reason }): Found => {
      const what = topic === null ? 'everything is' : `the topic '${topic}' is`
      const who = `${by === null ? '' : ` by ${by}`}${reason === null ? '' : ` (${reason})`}`
      return {
        kind: 'paused',
        severity: 'warning',
        message: `${what} paused${who}, for ${formatAge(server.clockMs - since.getTime())} now`,
        remedy: `aftercommit resume${topic === null ? '' : ` '${topic}'`}, when the reason is gone`,
      }
    })
  },
}

export const deadLettersCheck: Check = {
  name: 'dead letters',
  readsEvents: true,
  async run({ store }) {
    const byType = Object.entries(await store.countDeadLetters(COUNTED))
    if (byType.length === 0) return []
    const count = byType.reduce((sum, [, ofType]) => sum + ofType, 0)
    const types = byType.map(([type, ofType]) => `${type}: ${ofType}`).join(', ')
    const letters = count === 1 ? 'is one dead letter' : `are ${count} dead letters`
    return [
      {
        kind: 'dead',
        severity: 'warning',
        message: `there ${letters}${count >= COUNTED ? ' or more' : ''} (${types})`,
        remedy:
          'aftercommit groups shows why; fix the cause, then run aftercommit retry, or aftercommit discard',
      },
    ]
  },
}
