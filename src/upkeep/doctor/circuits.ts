// Destinations that running instances cannot reach, as their last beats reported them.
import { describeUnreached, findUnreached, splitBySeen } from '../seen-instances.ts'
import type { Check } from './finding.ts'

const FIX =
  'fix the broker, the topic or the credentials, as the error says; no attempts are used up, and the backlog drains by itself within seconds of its return'

export const circuitsCheck: Check = {
  name: 'circuits',
  async run({ store }) {
    const [running] = splitBySeen(await store.control.instances())
    return findUnreached(running).map((unreached) => {
      const { topic } = unreached
      return {
        kind: 'circuit',
        severity: 'error',
        message: describeUnreached(unreached, running.length),
        remedy:
          topic === null
            ? FIX
            : `${FIX}; if the name of the topic is wrong, aftercommit reroute '${topic}' <topic> moves its events`,
      }
    })
  },
}
