// How long the turns of each workload took, beside what was planned.
import { performance } from 'node:perf_hooks'
import type { Spent } from './results.ts'
import type { Step } from './steps.ts'

export class TimeSheet {
  readonly #spent = new Map<string, Spent>()

  async note({ workload, weight }: Pick<Step, 'workload' | 'weight'>, run: () => Promise<void>) {
    const begunAt = performance.now()
    await run()
    const before = this.#spent.get(workload)
    this.#spent.set(workload, {
      workload,
      turns: (before?.turns ?? 0) + 1,
      plannedSeconds: (before?.plannedSeconds ?? 0) + weight,
      seconds: (before?.seconds ?? 0) + (performance.now() - begunAt) / 1_000,
    })
  }

  get spent(): Spent[] {
    return [...this.#spent.values()]
  }
}
