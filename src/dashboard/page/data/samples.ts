// The last hours as the plots draw them: what came is kept, what is older goes, and a time without samples becomes a gap.
import type { HistoryAnswer, Sample } from '../../api.ts'

/** The page keeps what it was sent for this long. */
const WINDOW_MS = 3_600_000

/** A sample that knows how far it is from the next one. */
export type Point = Sample & { readonly stepMs: number }

/** As much as the plots show unless a person chooses. */
const SPANS_MS = [2, 5, 15, 30].map((minutes) => minutes * 60_000)

/** Where little is known yet, an hour would be a line at its edge. */
export function spanOf(points: readonly Point[], now: number): number {
  const ageMs = now - (points[0]?.at ?? 0)
  return SPANS_MS.find((spanMs) => ageMs <= spanMs) ?? WINDOW_MS
}

export type Series = (number | null)[]

export function addSamples(
  known: readonly Point[],
  came: readonly Point[],
  now: number,
): readonly Point[] {
  const last = known.at(-1)?.at ?? 0
  // A server that was started anew begins its history again; what the page has seen stays.
  const fresh = came.filter(({ at }) => at > last)
  return [...known, ...fresh].filter(({ at }) => at >= now - WINDOW_MS)
}

/** What instances wrote, in those of its steps in which the server of the page did not look itself. */
export function joinHistory(
  { samples, stepMs }: Pick<HistoryAnswer, 'samples' | 'stepMs'>,
  seen: readonly Point[],
): readonly Point[] {
  const stepOf = ({ at }: Sample) => Math.ceil(at / stepMs)
  const seenIn = new Set(seen.map(stepOf))
  const before = samples
    .filter((sample) => !seenIn.has(stepOf(sample)))
    .map((sample) => ({ ...sample, stepMs }))
  return [...before, ...seen].toSorted((one, other) => one.at - other.at)
}

/** One list of times, in seconds, and one of values for each `read`; null in the middle of a gap. */
export function columnsOf(
  points: readonly Point[],
  reads: readonly ((sample: Sample) => number | null)[],
): [number[], ...Series[]] {
  const times: number[] = []
  const columns: Series[] = reads.map(() => [])
  let before: Point | null = null
  for (const point of points) {
    if (before && point.at - before.at > 2.5 * Math.max(before.stepMs, point.stepMs)) {
      times.push((before.at + point.at) / 2000)
      for (const column of columns) column.push(null)
    }
    times.push(point.at / 1000)
    reads.forEach((read, index) => columns[index]!.push(read(point)))
    before = point
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
