// How the time is divided: a warm-up that is not measured, then three phases of the same length. The first has
// autovacuum, in the second somebody holds an old transaction open, in the third it is gone.

export type PhaseName = 'warm-up' | 'steady' | 'held' | 'recovery'

export interface Phase {
  readonly name: PhaseName
  readonly seconds: number
}

const LONGEST_WARM_UP = 60

export function planPhases(seconds: number): Phase[] {
  const warmUp = Math.min(LONGEST_WARM_UP, seconds / 4)
  const each = (seconds - warmUp) / 3
  return [
    { name: 'warm-up', seconds: warmUp },
    { name: 'steady', seconds: each },
    { name: 'held', seconds: each },
    { name: 'recovery', seconds: each },
  ]
}

/** Often enough for a fit, seldom enough to leave the service alone. */
export function sampleEveryMs(seconds: number): number {
  return Math.min(5_000, Math.max(1_000, (seconds * 1_000) / 120))
}
