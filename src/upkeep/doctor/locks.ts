// Sessions that lock the tables of the outbox, so that every other statement waits.
import { formatAge } from '../age.ts'
import type { Blocker } from '../../store/outbox/doctor/blockers.ts'
import type { Found } from './finding.ts'

/** The finding when a statement did not get a lock. */
export function blockedBy(blockers: readonly Blocker[]): Found[] {
  if (blockers.length > 0) return blockers.map(toFound)
  return [
    {
      severity: 'warning',
      message: 'another session had locked a table of the outbox for some seconds',
      remedy: 'run the command again, because the lock is gone now',
    },
  ]
}

function toFound(blocker: Blocker): Found {
  const { pid, gid, ageMs, firstWaiting } = blocker
  const name = gid === null ? `pid ${pid}` : `the prepared transaction '${gid}'`
  const since = ageMs === null ? '' : `, whose transaction has been open for ${formatAge(ageMs)}`
  const who = `${name} (${describe(blocker)})${since}`
  const end =
    gid === null
      ? `end that transaction in its application, or with select pg_terminate_backend(${pid})`
      : `commit prepared or rollback prepared '${gid.replaceAll("'", "''")}'`
  if (firstWaiting === null) {
    const message = `the table is locked by ${who}, so every other statement waits`
    return { severity: 'error', message, remedy: end }
  }
  const first = `pid ${firstWaiting.pid} (${describe(firstWaiting)})`
  return {
    severity: 'error',
    message: `${first} waits to lock the table, and every later statement waits behind it; it waits for ${who}`,
    remedy: `${end}; or take the first one out of the queue with select pg_cancel_backend(${firstWaiting.pid})`,
  }
}

type Described = Pick<Blocker, 'role' | 'application' | 'statement'> & { state?: string | null }

function describe({ role, application, state, statement }: Described): string {
  const about = [
    role && `role ${role}`,
    application && `application ${application}`,
    state,
    statement && `statement: ${statement} ...`,
  ]
  return about.filter(Boolean).join(', ')
}
