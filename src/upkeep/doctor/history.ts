// Published events that are past their retention: no instance cleans up, or the cleanup does not keep up. The retention is
// what the running instances say; without any, nothing is known of it.
import { formatDuration } from '../../checks/duration.ts'
import { formatAge } from '../age.ts'
import { LATER_WITH_PARTITIONS_MS } from '../retention.ts'
import { splitBySeen } from '../seen-instances.ts'
import type { Check } from './finding.ts'

const DAY_MS = 86_400_000

/** Counted no further. */
const COUNTED = 10_000

export const historyCheck: Check = {
  name: 'history',
  readsEvents: true,
  async run({ store, preview }, { isPartitioned }) {
    const [running] = splitBySeen(await store.control.instances())
    const settings = running.map((instance) => instance.settings)
    const retentions = settings.map(({ retention }) => Number(retention)).filter((ms) => ms > 0)
    if (retentions.length === 0) return []
    const retentionMs = Math.max(...retentions)
    // An instance that does not say so is of an earlier version, and may well clean up.
    const isCleaned = settings.some(({ cleanup }) => cleanup !== false)
    const olderThanMs =
      retentionMs + (isCleaned ? DAY_MS : 0) + (isPartitioned ? LATER_WITH_PARTITIONS_MS : 0)
    const { count, exact } = await preview.countOld({
      status: 'published',
      olderThanMs,
      most: COUNTED,
    })
    if (count === 0) return []
    const events = `${exact ? '' : 'at least '}${count} published ${count === 1 ? 'event is' : 'events are'}`
    const past = `past the retention of ${formatAge(retentionMs)}`
    const purge = `aftercommit purge --older-than ${formatDuration(retentionMs)}`
    return [
      isCleaned
        ? {
            kind: 'history',
            severity: 'warning',
            message: `${events} ${past} by more than a day: the cleanup does not keep up`,
            remedy: `look for errors of the cleanup in the logs of the instances; ${purge} deletes them now`,
          }
        : {
            kind: 'history',
            severity: 'warning',
            message: `${events} ${past}, and no running instance cleans up`,
            remedy: `run ${purge} every day, or set the option 'cleanup' in an instance`,
          },
    ]
  },
}
