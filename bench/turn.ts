// Who takes a turn, and what comes of one.
import type { Arrivals } from './arrivals.ts'
import type { ContenderName } from './contender.ts'
import type { LoadResult } from './job.ts'
import type { ServerCost } from './server-cost.ts'

export interface Variant {
  readonly contender: ContenderName
  readonly tuned: boolean
}

export const OURS: Variant = { contender: 'aftercommit', tuned: false }

/** They have no table: what they send is in their memory. */
export const FROM_MEMORY: readonly ContenderName[] = ['kafkajs-only', 'platformatic-only']

export interface LoadTurn extends LoadResult {
  readonly cost: ServerCost
  /** null: it sends nothing, or the topic has not been read yet. */
  arrivals: Arrivals | null
}

export interface DrainResult {
  readonly rowsPerSecond: number
  readonly arrivals: Arrivals
  /** CPU of all backends, for one event; null where it cannot be measured. */
  readonly postgresCpuUs: number | null
}
