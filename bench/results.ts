// What a run found out, in the form in which it is kept: medians over the rounds, contender by contender.
import type { ContenderName } from './contender.ts'
import type { ClaimsResult, OverheadResult } from './job.ts'
import type { Scene } from './scenes.ts'
import type { Spread } from './spread.ts'
import type { Variant } from './turn.ts'

export interface LoadFigures {
  readonly rounds: number
  readonly perSecond: number
  /** Round by round: how far a median may be off. */
  readonly perSecondEach: readonly number[]
  readonly latencyMs: Spread
  readonly unitMs: Spread
  /** Over all rounds; warm-ups have been delivered too. */
  readonly committed: number
  readonly lost: number
  readonly duplicates: number
  readonly statementsPerEvent: number
  readonly walBytesPerEvent: number
  readonly cpuSecondsPer10kEvents: number
  readonly peakRssMb: number
}

export interface DrainFigures {
  readonly rounds: number
  readonly rowsPerSecond: number
  readonly rowsPerSecondEach: readonly number[]
  /** CPU of Postgres for one event, in µs; null where it was not measured, or there is no Postgres. */
  readonly postgresCpuUs: number | null
  readonly postgresCpuUsEach: readonly number[]
  /** Over all rounds. */
  readonly delivered: number
  readonly lost: number
  readonly duplicates: number
}

export interface HistoryFigures {
  readonly published: number
  readonly pollMs: number
  readonly rowsPerSecond: number
  readonly lost: number
  readonly duplicates: number
}

export interface ClaimFigures extends ClaimsResult {
  readonly scene: Scene
  /** How many rows are in the way. */
  readonly rows: number
  readonly rounds: number
  /** The medians of the rounds. */
  readonly claimMsEach: readonly number[]
  readonly ratioEach: readonly number[]
}

export interface Failure {
  readonly contender: ContenderName
  readonly turn: string
  readonly reason: string
}

/** How long the turns of a workload took. */
export interface Spent {
  readonly workload: string
  readonly turns: number
  readonly plannedSeconds: number
  readonly seconds: number
}

/** By workload, then by contender; a workload that was left out is not there. */
export interface Results {
  loads: Record<string, Record<string, LoadFigures>>
  drains: Record<string, Record<string, DrainFigures>>
  history: HistoryFigures[]
  claims: ClaimFigures[]
  overhead: OverheadResult | null
  idleStatementsPerSecond: number | null
  /** Turns that came to no figure. */
  failures: Failure[]
}

export function noResults(): Results {
  return {
    loads: {},
    drains: {},
    history: [],
    claims: [],
    overhead: null,
    idleStatementsPerSecond: null,
    failures: [],
  }
}

export function nameOf({ contender, tuned }: Variant): string {
  if (!tuned) return contender
  // Ours differs in this one setting, so it goes by its name.
  return `${contender} (${contender === 'aftercommit' ? 'retention: 0' : 'tuned'})`
}
