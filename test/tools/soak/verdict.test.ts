import { expect, it } from 'vitest'
import { planPhases } from './phases.ts'
import { MB, type Sample } from './samples.ts'
import { STEPS } from './table-watch.ts'
import { type Evidence, judgeSoak } from './verdict.ts'

const ROW_BYTES = 500
const ROWS_PER_SECOND = 100
const LOOK = { handles: { TCPSocketWrap: 11, Timeout: 16 }, listeners: { process: 12 } }
const TALLY = { committed: 29_000, rolledBack: 900, failed: 0, missed: 0, warnings: 0, errors: 0 }
const DELIVERY = {
  committed: 60_000,
  delivered: 60_000,
  lost: 0,
  phantom: 0,
  duplicates: 0,
  outOfOrder: 0,
  corrupted: 0,
}

type Shape = {
  heapMb?: (seconds: number) => number
  externalMb?: (seconds: number) => number
  rssMb?: (seconds: number) => number
  tableMb?: (seconds: number) => number
  claimPages?: (seconds: number) => number
}

/** A run in which all is well, but for what is given. */
function evidenceOf(seconds: number, shape: Shape = {}, changes: Partial<Evidence> = {}): Evidence {
  const phases = planPhases(seconds)
  let at = 0
  const samples = phases.flatMap(({ name, seconds: length }) => {
    const begin = at
    at += length
    return Array.from({ length: 20 }, (_, n): Sample => {
      const atSeconds = begin + (length * (n + 1)) / 20
      return sampleAt(atSeconds, name, shape)
    })
  })
  const look = { first: LOOK, last: LOOK, endedByItself: true }
  const counts = { tally: TALLY, delivery: DELIVERY }
  return { phases, samples, ...look, ...counts, rowBytes: ROW_BYTES, ...changes }
}

function sampleAt(atSeconds: number, phase: Sample['phase'], shape: Shape): Sample {
  const { heapMb = () => 20, externalMb = () => 5, rssMb = () => 120 } = shape
  const { tableMb = () => 4, claimPages = () => 20 } = shape
  // Totals: one call a second.
  const total = { calls: atSeconds, ms: atSeconds, pages: atSeconds * claimPages(atSeconds) }
  return {
    atSeconds,
    phase,
    service: {
      heapBytes: heapMb(atSeconds) * MB,
      externalBytes: externalMb(atSeconds) * MB,
      rssBytes: rssMb(atSeconds) * MB,
      ...TALLY,
      flags: [],
    },
    table: {
      tableBytes: tableMb(atSeconds) * MB,
      indexBytes: MB,
      deadRows: 0,
      rows: atSeconds * ROWS_PER_SECOND,
      versions: atSeconds * ROWS_PER_SECOND * 2,
      autovacuums: 5,
    },
    statements: Object.fromEntries(STEPS.map((step) => [step, total])),
  }
}

const failuresOf = (evidence: Evidence) => judgeSoak(evidence).failures

it('finds nothing wrong with a service that stays as it is', () => {
  const { failures, notJudged } = judgeSoak(evidenceOf(600))
  expect(failures).toEqual([])
  expect(notJudged).toEqual([])
})

it('forgives a heap that grows while it warms up', () => {
  expect(failuresOf(evidenceOf(600, { heapMb: (at) => Math.min(at, 60) }))).toEqual([])
})

it.each([
  ['heapMb', /^heap: grew by 1\.20 MB a minute/],
  ['externalMb', /^external: grew by 1\.20 MB a minute/],
  ['rssMb', /^rss: grew by 1\.20 MB a minute/],
] as const)('fails a service whose %s grows by more than 1 MB a minute', (name, text) => {
  const failures = failuresOf(evidenceOf(600, { [name]: (at: number) => 20 + at * 0.02 }))
  expect(failures).toEqual([expect.stringMatching(text)])
})

it('says of a short run that it cannot judge slopes and sizes', () => {
  const grow = (at: number) => at * 10
  const leaking = { heapMb: grow, rssMb: grow, tableMb: grow }
  const { failures, notJudged } = judgeSoak(evidenceOf(30, leaking))
  expect(failures).toEqual([])
  expect(notJudged).toEqual([expect.stringMatching(/^memory/), expect.stringMatching(/^sizes/)])
})

it('judges delivery and handles however short the run', () => {
  const delivery = { ...DELIVERY, lost: 1, delivered: 59_999, duplicates: 2 }
  const last = { handles: { TCPSocketWrap: 12 }, listeners: { process: 12, outbox: 1 } }
  expect(failuresOf(evidenceOf(30, {}, { delivery, last, endedByItself: false }))).toEqual([
    'lost: 1 events',
    'duplicates: 2 events',
    'handles: TCPSocketWrap grew from 11 to 12',
    'listeners: outbox grew from 0 to 1',
    'handles: something kept the process alive after stop()',
  ])
})

it('forgives a connection that is gone at the end', () => {
  const last = { ...LOOK, handles: { TCPSocketWrap: 10 } }
  expect(failuresOf(evidenceOf(600, {}, { last }))).toEqual([])
})

it.each([
  [{ failed: 1 }, 'failed: 1 of 29901 units of work'],
  [{ errors: 2 }, 'errors: 2 background steps failed'],
  [{ warnings: 1 }, 'warnings: 1 of the process'],
])('fails a service with %j, however short the run', (changes, text) => {
  const tally = { ...TALLY, ...changes }
  for (const seconds of [30, 600]) {
    expect(failuresOf(evidenceOf(seconds, {}, { tally }))).toEqual([text])
  }
})

it('forgives one unit in a hundred that was not begun, and no more, however short the run', () => {
  const missing = (missed: number) => ({ tally: { ...TALLY, committed: 29_100 - missed, missed } })
  for (const seconds of [30, 600]) {
    expect(failuresOf(evidenceOf(seconds, {}, missing(300)))).toEqual([])
    expect(failuresOf(evidenceOf(seconds, {}, missing(301)))).toEqual([
      'missed: 301 of 30000 units of work, more than 1 %',
    ])
  }
})

it('fails a run in which most units fail, though what was committed arrived', () => {
  const tally = { ...TALLY, committed: 1, failed: 29_000 }
  const delivery = { ...DELIVERY, committed: 1, delivered: 1 }
  expect(failuresOf(evidenceOf(600, {}, { tally, delivery }))).toEqual([
    'failed: 29000 of 29901 units of work',
  ])
})

it('fails a run in which nothing happened', () => {
  const delivery = { ...DELIVERY, committed: 0, delivered: 0 }
  expect(failuresOf(evidenceOf(30, {}, { delivery }))).toEqual(['nothing was committed'])
})

it('fails a run whose statements Postgres did not count', () => {
  const { samples, ...rest } = evidenceOf(30)
  const blind = samples.map((sample) => ({ ...sample, statements: {} }))
  expect(failuresOf({ ...rest, samples: blind })).toHaveLength(STEPS.length)
})

it('fails a table that goes on growing under autovacuum', () => {
  const failures = failuresOf(evidenceOf(600, { tableMb: (at) => 1 + at / 20 }))
  expect(failures).toContain('tableBytes: still grew in the second half of the steady phase')
})

it('fails a table that is larger than retention and autovacuum explain', () => {
  const failures = failuresOf(evidenceOf(600, { tableMb: () => 100 }))
  expect(failures).toEqual(['tableBytes: more than retention and autovacuum explain'])
})

it('lets a table grow with what is written while an old transaction is held, and no faster', () => {
  const heldFor = (at: number) => Math.min(Math.max(0, at - 240), 180)
  const mbPerSecond = (ROWS_PER_SECOND * ROW_BYTES * 2) / MB
  const asWritten = (at: number) => 4 + heldFor(at) * mbPerSecond
  const faster = (at: number) => 4 + heldFor(at) * mbPerSecond * 3
  expect(failuresOf(evidenceOf(600, { tableMb: asWritten }))).toEqual([])
  expect(failuresOf(evidenceOf(600, { tableMb: faster }))).toEqual([
    'tableBytes: grew faster than rows were written, with an old transaction held',
  ])
})

it('fails a table that goes on growing when the old transaction is gone', () => {
  const failures = failuresOf(evidenceOf(600, { tableMb: (at) => 4 + Math.max(0, at - 420) / 5 }))
  expect(failures).toEqual(['tableBytes: still grew after the old transaction was gone'])
})

it('lets a claim pass over what is dead while an old transaction is held, and no further', () => {
  // 100 rows a second for 180 seconds.
  const during = (pages: number) => (at: number) => (at > 240 && at <= 420 ? pages : 20)
  expect(failuresOf(evidenceOf(600, { claimPages: during(18_000) }))).toEqual([])
  expect(failuresOf(evidenceOf(600, { claimPages: during(180_000) }))).toEqual([
    'claim: looked at more than what was dead, with an old transaction held',
  ])
})

it('fails a claim that stays dear after the old transaction is gone', () => {
  const claimPages = (at: number) => (at > 240 ? 18_000 : 20)
  expect(failuresOf(evidenceOf(600, { claimPages }))).toEqual([
    'claim: did not become cheap again after the old transaction was gone',
  ])
})
