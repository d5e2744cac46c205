// Destinations that running instances cannot reach, as their last beats reported them.
import { isDenied, isLocked } from '../../store/database.ts'
import { describeUnreached, findUnreached, splitBySeen } from '../seen-instances.ts'
import type { TableStats } from '../../store/outbox/outbox-store.ts'
import type { Check, DoctorParts } from './finding.ts'

const FIX =
  'fix the broker, the topic or the credentials, as the error says; no attempts are used up, and the backlog drains by itself within seconds of its return'

export const circuitsCheck: Check = {
  name: 'circuits',
  async run({ store }) {
    const [running] = splitBySeen(await store.control.instances())
    const isAnyOpen = running.some(({ report }) => report.circuits.length > 0)
    const waiting = isAnyOpen ? await waitingTopics(store) : null
    return findUnreached(running, waiting).map((unreached) => {
      const { topic, isWaitedFor } = unreached
      const message = describeUnreached(unreached, running.length)
      // Without a kind: there is nothing to do, so the page offers nothing.
      if (!isWaitedFor) return { severity: 'info', message, remedy: null }
      return {
        kind: 'circuit',
        severity: 'error',
        message,
        remedy:
          topic === null
            ? FIX
            : `${FIX}; if the name of the topic is wrong, aftercommit reroute '${topic}' <topic> moves its events`,
      }
    })
  },
}

/** null if they cannot be read: an outage is reported all the same. */
async function waitingTopics(store: DoctorParts['store']): Promise<TableStats['topics'] | null> {
  try {
    return (await store.stats()).topics
  } catch (error) {
    if (isDenied(error) || isLocked(error)) return null
    throw error
  }
}
