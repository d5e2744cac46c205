// Counts that were taken several times, as one: each name with its median.
import type { Counts } from './resources.ts'

/** A name that is missing counts as 0, and one whose median is 0 is left out. */
export function medianOf(counts: readonly Counts[]): Counts {
  const names = new Set(counts.flatMap((one) => Object.keys(one)))
  const medians = [...names].toSorted().map((name) => {
    const sorted = counts.map((one) => one[name] ?? 0).toSorted((a, b) => a - b)
    return [name, sorted[Math.floor(sorted.length / 2)]!] as const
  })
  return Object.fromEntries(medians.filter(([, median]) => median > 0))
}
