// How large the table may become. A row is written once when it is saved, once when it is published, and once
// more for each claim, renewal or return to the fallback, which few of them see. Each version stays until its row
// is past its retention and autovacuum has come by.
import { CLEANUP_SECONDS, RETENTION_SECONDS } from './load.ts'
import { costAtEnd, halves, most, ofPhase, type Sample, written } from './samples.ts'

/**
 * How often autovacuum looks at the table. An index is as large as it gets after some nine rounds, since an empty
 * page is used again only after the round that follows: with Postgres' own 60 s that would be half of a soak.
 */
export const NAPTIME_SECONDS = 15

const VERSIONS_PER_ROW = 2.5
/** Free space at the end of pages, and what is in a page besides rows. */
const PAGE_SLACK = 1.25
/** Entries of all indexes for one version, in pages that are half full. */
const INDEX_BYTES_PER_VERSION = 160
/** By how much a size may differ between two times and still count as the same. */
const SAME = 1.25

/** A dead row costs a claim one look at its index and one at the table. */
const PAGES_PER_DEAD_ROW = 2
/** What a claim of a hundred rows looks at anyway. */
const PAGES_OF_A_CLAIM = 1_000

/** In a shorter phase autovacuum comes by too seldom, and a size says nothing. */
export const SHORTEST_PHASE_SECONDS = 8 * NAPTIME_SECONDS

export interface SizeVerdict {
  /** The largest it was in each phase, in bytes. */
  readonly steady: number
  readonly held: number
  readonly end: number
  /** What it might have been at most. */
  readonly steadyLimit: number
  readonly heldLimit: number
  readonly failures: string[]
}

export function judgeSize(
  samples: readonly Sample[],
  kind: 'tableBytes' | 'indexBytes',
  rowBytes: number,
): SizeVerdict {
  const bytesPerVersion = kind === 'tableBytes' ? rowBytes * PAGE_SLACK : INDEX_BYTES_PER_VERSION
  const bytesPerRow = bytesPerVersion * VERSIONS_PER_ROW
  const [steady, held, recovery] = (['steady', 'held', 'recovery'] as const).map((name) =>
    ofPhase(samples, name),
  ) as [Sample[], Sample[], Sample[]]
  const keptSeconds = RETENTION_SECONDS + CLEANUP_SECONDS + NAPTIME_SECONDS
  const steadyMost = most(steady, kind)
  const heldMost = most(held, kind)
  const steadyLimit = rowsPerSecond(steady) * keptSeconds * bytesPerRow
  const heldLimit = steadyMost + written(held, 'rows') * bytesPerRow
  const failures: string[] = []
  const expect = (good: boolean, text: string) => good || failures.push(`${kind}: ${text}`)

  expect(steadyMost <= steadyLimit, 'more than retention and autovacuum explain')
  expect(grows(halves(steady), kind) <= SAME, 'still grew in the second half of the steady phase')
  expect(heldMost <= heldLimit, 'grew faster than rows were written, with an old transaction held')
  expect(grows(halves(recovery), kind) <= SAME, 'still grew after the old transaction was gone')
  const end = recovery.at(-1)?.table[kind] ?? 0
  return { steady: steadyMost, held: heldMost, end, steadyLimit, heldLimit, failures }
}

/**
 * A claim has to pass over what is dead and cannot be removed: so far and no further, and no longer than the old
 * transaction is there. Counted in pages, which unlike times are the same on a busy machine.
 */
export function judgeClaims(samples: readonly Sample[]): string[] {
  const [held, recovery] = [ofPhase(samples, 'held'), ofPhase(samples, 'recovery')]
  const failures: string[] = []
  const limit = PAGES_OF_A_CLAIM + written(held, 'rows') * PAGES_PER_DEAD_ROW
  if (costAtEnd(held, 'claim').pages > limit) {
    failures.push('claim: looked at more than what was dead, with an old transaction held')
  }
  if (costAtEnd(recovery, 'claim').pages > PAGES_OF_A_CLAIM) {
    failures.push('claim: did not become cheap again after the old transaction was gone')
  }
  return failures
}

function rowsPerSecond(samples: readonly Sample[]): number {
  const seconds = (samples.at(-1)?.atSeconds ?? 0) - (samples[0]?.atSeconds ?? 0)
  return seconds > 0 ? written(samples, 'rows') / seconds : 0
}

/** How many times larger it became from the first half to the second. */
function grows([before, after]: readonly [Sample[], Sample[]], kind: 'tableBytes' | 'indexBytes') {
  return most(after, kind) / Math.max(1, most(before, kind))
}
