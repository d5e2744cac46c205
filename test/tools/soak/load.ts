// What the service does, and for how long its rows stay: small units of work, most with one event.
import type { Unit } from '../torture/business.ts'
import type { Random } from '../torture/random.ts'

/** Short, so that the table is as large as it gets within the first minute. */
export const RETENTION_SECONDS = 30
export const CLEANUP_SECONDS = 5

const ACCOUNTS = 60

export interface PlannedUnit {
  readonly unit: Unit
  /** Saved by an instance that sends nothing: the fallback has to find its events. */
  readonly isAbandoned: boolean
}

export function planUnit(random: Random): PlannedUnit {
  const accounts = new Set<string>()
  for (let n = random.chance(0.2) ? 2 : 1; n > 0; n -= 1) {
    accounts.add(`account-${random.between(1, ACCOUNTS)}`)
  }
  return {
    unit: {
      way: 'withOutbox',
      // In one order, so that no two of them can wait for each other.
      accounts: [...accounts].toSorted(),
      events: random.pick([
        [70, 1],
        [30, random.between(2, 4)],
      ]),
      size: random.pick([
        [90, 50],
        [10, 1_000],
      ]),
      sleepMs: random.pick([
        [99, 0],
        [1, 100],
      ]),
      locks: true,
      heldMs: 0,
      answeredAfterMs: 0,
      nestedFailure: random.chance(0.03),
      nested: random.chance(0.05),
      changesItsMind: random.chance(0.05),
      schedule: null,
      cancel: null,
    },
    isAbandoned: random.chance(0.02),
  }
}
