// The last hour as the plots draw it: what came is kept, what is older goes, and a time without samples becomes a gap.
import type { Sample } from '../../api.ts'

const WINDOW_MS = 3_600_000

/** How much of the hour the plots show. */
const SPANS_MS = [2, 5, 15, 30].map((minutes) => minutes * 60_000)

/** A server that has just started has little to show, which would be a line at the edge of an hour. */
export function spanOf(samples: readonly Sample[], now: number): number {
  const ageMs = now - (samples[0]?.at ?? 0)
  return SPANS_MS.find((spanMs) => ageMs <= spanMs) ?? WINDOW_MS
}

export type Series = (number | null)[]

export function addSamples(
  known: readonly Sample[],
  came: readonly Sample[],
  now: number,
): Sample[] {
  const last = known.at(-1)?.at ?? 0
  // A server that was started anew begins its history again; what the page has seen stays.
  const fresh = came.filter(({ at }) => at > last)
  return [...known, ...fresh].filter(({ at }) => at >= now - WINDOW_MS)
}

/** One list of times, in seconds, and one of values for each `read`; null in the middle of a gap. */
export function columnsOf(
  samples: readonly Sample[],
  sampleMs: number,
  reads: readonly ((sample: Sample) => number | null)[],
): [number[], ...Series[]] {
  const times: number[] = []
  const columns: Series[] = reads.map(() => [])
  let before: number | null = null
  for (const sample of samples) {
    if (before !== null && sample.at - before > 2.5 * sampleMs) {
      times.push((before + sample.at) / 2000)
      for (const column of columns) column.push(null)
    }
    times.push(sample.at / 1000)
    reads.forEach((read, index) => columns[index]!.push(read(sample)))
    before = sample.at
  }
  return [times, ...columns]
}

export interface Trend {
  readonly by: number
  readonly overMs: number
}

/** How much a figure has changed in the last five minutes, or in as much of them as there are samples for. */
export function trendOf(
  samples: readonly Sample[],
  read: (sample: Sample) => number | null,
  spanMs = 300_000,
): Trend | null {
  const last = samples.at(-1)
  if (!last) return null
  const first = samples.find((sample) => sample.at >= last.at - spanMs && read(sample) !== null)
  const [from, to] = [first && read(first), read(last)]
  if (!first || from == null || to == null || first === last) return null
  return { by: to - from, overMs: last.at - first.at }
}
