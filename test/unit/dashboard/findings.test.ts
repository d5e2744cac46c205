// What the page says at a glance: each trouble with its remedy, the worst first.
import { expect, it } from 'vitest'
import { findTroubles } from '../../../src/dashboard/findings.ts'
import type { Seen } from '../../../src/dashboard/sampler.ts'
import { sampleInstance, sampleStats } from '../../support/doubles/sample-instance.ts'

const NOW = Date.parse('2026-01-01T12:00:00Z')
const seen = (given: Partial<Omit<Seen, 'stats'>> & { stats?: object } = {}): Seen => ({
  clockMs: NOW,
  instances: [sampleInstance()],
  pauses: [],
  agoMs: 0,
  lateMs: 0,
  isLocked: false,
  ...given,
  stats: { ...sampleStats(), ...given.stats },
})
const waiting = { pending: { count: 1_200, exact: true } }

it('finds nothing where all is well', () => {
  expect(findTroubles(seen(), [], [])).toEqual([])
  expect(findTroubles(seen({ stats: waiting }), [], [])).toEqual([])
  expect(findTroubles(seen({ instances: [] }), [], [])).toEqual([])
})

it.each<[kind: string, severity: string, given: Parameters<typeof seen>[0], what: RegExp]>([
  ['database', 'error', { lateMs: 12_000, agoMs: 17_000 }, /not responded for 12 s.* 17 s old/],
  [
    'no-instance',
    'error',
    { stats: waiting, instances: [] },
    /^1,200 events wait, and no instance/,
  ],
  [
    'no-instance',
    'error',
    { stats: waiting, instances: [sampleInstance({ poller: false })] },
    /none of the 1 running instances runs the fallback/,
  ],
  ['lag', 'warning', { stats: { lagMs: 120_000 } }, /waited for 2 min/],
  ['dead', 'warning', { stats: { dead: { count: 1, exact: true } } }, /^There is 1 dead letter/],
  [
    'dead',
    'warning',
    { stats: { dead: { count: 100_000, exact: false } } },
    /^There are at least 100,000 dead letters/,
  ],
  [
    'lost-instance',
    'warning',
    { instances: [sampleInstance(), sampleInstance({ id: 'b', seenMsAgo: 300_000 })] },
    /^The instance worker-1 \(host host-1, pid 42\) was last seen 5 min ago; other instances send its events/,
  ],
  [
    'paused',
    'warning',
    {
      pauses: [{ topic: 'orders', since: new Date(NOW - 60_000), by: 'ada', reason: 'moving' }],
    },
    /^The topic orders is paused by ada \(moving\), for 1 min/,
  ],
  [
    'paused',
    'warning',
    { pauses: [{ topic: null, since: new Date(NOW - 60_000), by: null, reason: null }] },
    /^Everything is paused, for 1 min/,
  ],
])('finds %s as %s', (kind, severity, given, what) => {
  const found = findTroubles(seen(given), [], [])
  expect(found).toMatchObject([{ kind, severity, what: expect.stringMatching(what) }])
  expect(found[0]!.remedy).toMatch(/\.$/)
  expect(found[0]!.link).not.toBeNull()
})

it('finds a circuit once, however many instances have it open, and links to its events', () => {
  const circuit = { publisher: 'kafka', topic: 'a&b', forMs: 60_000, error: 'refused' }
  const report = { circuits: [circuit] }
  const instances = [sampleInstance({ report }), sampleInstance({ id: 'b', report })]
  const topics = { 'a&b': { pending: { count: 1, exact: true }, lagMs: 1 } }
  const found = findTroubles(seen({ instances, stats: { topics } }), [], [])
  expect(found).toMatchObject([{ kind: 'circuit', severity: 'error', move: 'a&b' }])
  expect(found[0]!.remedy).toContain('If the name is mistyped, correct it in the application')
  expect(found[0]!.what).toMatch(/^The topic a&b of kafka .* in 2 of 2 running instances: refused/)
  expect(found[0]!.link).toEqual({ to: 'events', query: 'topic=a%26b&status=pending%2Cfailed' })
})

it('notes a circuit of a topic that nothing waits for, and offers no remedy', () => {
  const circuit = { publisher: 'kafka', topic: 'ordres', forMs: 60_000, error: 'refused' }
  const instances = [sampleInstance({ report: { circuits: [circuit] } })]
  const stats = { dead: { count: 2, exact: true } }
  const found = findTroubles(seen({ instances, stats }), [], [])
  expect(found).toMatchObject([{ kind: 'dead' }, { kind: 'circuit', severity: 'info' }])
  expect(found[1]).toMatchObject({
    what: expect.stringContaining('nothing waits for it'),
    remedy: null,
  })
})

it('leads from a pause to where it can be resumed', () => {
  const pause = { topic: 'orders', since: new Date(NOW - 60_000), by: null, reason: null }
  const [found] = findTroubles(seen({ pauses: [pause] }), [], [])
  expect(found!.link).toEqual({ to: 'topics', query: '' })
})

it('names a lock first, then what hinders delivery, then the rest', () => {
  const stats = { ...waiting, dead: { count: 2, exact: true } }
  const lock = { severity: 'error', message: 'the table is locked', remedy: 'end it' } as const
  const found = findTroubles(
    seen({ stats, instances: [], isLocked: true, agoMs: 8_000 }),
    [lock],
    [],
  )
  expect(found.map(({ kind }) => kind)).toEqual(['lock', 'no-instance', 'dead'])
  expect(found[0]!.what).toBe('The table is locked. The figures are 8 s old.')
})

it('names what the doctor has found beside what is seen at a glance', () => {
  const stats = { dead: { count: 2, exact: true } }
  const checked = (severity: 'error' | 'warning', kind: string) => ({
    severity,
    kind,
    what: 'a transaction has been open for 5 min',
    remedy: null,
    link: { to: 'doctor', query: '' } as const,
  })
  const found = findTroubles(
    seen({ stats }),
    [],
    [checked('error', 'schema'), checked('warning', 'transactions')],
  )
  expect(found.map(({ kind }) => kind)).toEqual(['schema', 'dead', 'transactions'])
})
