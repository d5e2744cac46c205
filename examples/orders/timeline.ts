// The clock of the demo: what time it is since the first order, and what was the matter at each moment.
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'

export type Phase = 'running' | 'broker away' | 'broker starting' | 'broker back' | 'draining'

export interface Timeline {
  phase: Phase
  readonly elapsedMs: number
  /** The phase of each slice of the whole time that has passed; as many as `SLICES` at most. */
  readonly passed: readonly Phase[]
  /** Resolves at that time, at once if it has passed. Rejects when the signal aborts. */
  until(ms: number): Promise<void>
}

export const SLICES = 40

export function startTimeline(wholeMs: number, signal: AbortSignal): Timeline {
  const startedAt = performance.now()
  const changes: { at: number; phase: Phase }[] = [{ at: 0, phase: 'running' }]
  const elapsed = () => performance.now() - startedAt
  const phaseAt = (ms: number) => changes.findLast(({ at }) => at <= ms)!.phase

  return {
    get phase() {
      return changes.at(-1)!.phase
    },
    set phase(phase) {
      changes.push({ at: elapsed(), phase })
    },
    get elapsedMs() {
      return elapsed()
    },
    get passed() {
      const sliceMs = wholeMs / SLICES
      const length = Math.min(SLICES, Math.floor(elapsed() / sliceMs))
      return Array.from({ length }, (_, n) => phaseAt((n + 0.5) * sliceMs))
    },
    async until(ms) {
      await delay(Math.max(0, ms - elapsed()), undefined, { signal })
    },
  }
}
