// The oracle of the torture can say no: each kind of failure is found, and told from the others.
import { expect, it } from 'vitest'
import { type Arrival, judge, type JournalEntry } from './oracle.ts'
import {
  cancelledIn,
  judgeScheduled,
  type ScheduledSend,
  type ScheduledVerdict,
  type Scheduling,
} from './scheduled-oracle.ts'

/** Of three units that lock their account: they may have begun together, but have the lock in turn. */
const entry = (n: number): JournalEntry => ({
  eventId: `id-${n}`,
  account: 'account-1',
  n,
  payload: `{"n":${n}}`,
  note: `note ${n}`,
  locked: true,
  xid: 100 + n,
  snapshot: '100:100:',
  dueMs: null,
})

const arrival = ({ eventId, account, n, payload, note }: JournalEntry): Arrival => ({
  topic: 'torture-b',
  key: account,
  value: payload,
  headers: {
    'event-id': eventId,
    'event-type': n % 2 ? 'Debited' : 'Credited',
    'aggregate-type': 'account',
    'aggregate-id': account,
    'correlation-id': note,
    note,
  },
})

const journal = [1, 2, 3].map(entry)
const [first, second, third] = journal.map(arrival) as [Arrival, Arrival, Arrival]
const clean = {
  committed: 3,
  delivered: 3,
  lost: 0,
  phantom: 0,
  duplicates: 0,
  outOfOrder: 0,
  corrupted: 0,
}

it.each<[string, Arrival[], Partial<typeof clean>]>([
  ['nothing when all is well', [first, second, third], {}],
  ['an event that never arrived', [first, third], { delivered: 2, lost: 1 }],
  ['an event that nobody committed', [first, second, third, arrival(entry(4))], { phantom: 1 }],
  ['a message without an id', [first, second, third, { ...first, headers: {} }], { phantom: 1 }],
  ['an event that arrived twice', [first, second, first, third], { duplicates: 1 }],
  ['events in the wrong order', [first, third, second], { outOfOrder: 1 }],
  ['another payload', [first, { ...second, value: '{"n": 2}' }, third], { corrupted: 1 }],
  ['another key', [first, { ...second, key: 'account-2' }, third], { corrupted: 1 }],
  ['another topic', [first, { ...second, topic: 'torture-a' }, third], { corrupted: 1 }],
  [
    'another header',
    [first, { ...second, headers: { ...second.headers, note: 'changed' } }, third],
    { corrupted: 1 },
  ],
])('finds %s', (_, arrivals, found) => {
  expect(judge(journal, arrivals)).toEqual({ ...clean, ...found })
})

it('takes a repetition for a duplicate, not for a disorder', () => {
  expect(judge(journal, [first, second, first, second, third])).toEqual({ ...clean, duplicates: 2 })
})

const DUE = 10_000.5
/** The first of a unit that also emitted the second, which goes out at once. */
const later: JournalEntry = { ...entry(1), dueMs: DUE }
const soon: JournalEntry = { ...entry(2), xid: later.xid }
const claimed = (claimedMs = DUE): ScheduledSend => ({ id: later.eventId, claimedMs })
const row = { id: later.eventId, status: 'published', dueMs: DUE, isGone: false }
const gone = { ...row, status: 'scheduled', isGone: true }
const nothing: Scheduling = { cancels: [], loneCancels: [], rows: [row], sharedLanes: 0 }

const fine: ScheduledVerdict = {
  scheduled: 1,
  cancelled: 0,
  cancelledSent: 0,
  cancelledTwice: 0,
  early: 0,
  passed: 1,
  sharedLanes: 0,
}
const cancelled = { cancelled: 1, passed: 0 }
const sent = [soon.eventId, later.eventId]
const id = later.eventId

it.each<
  [
    string,
    string[],
    ScheduledSend[],
    Partial<Scheduling>,
    Partial<ScheduledVerdict>,
    Partial<JournalEntry>?,
  ]
>([
  ['nothing when all is well', sent, [claimed()], {}, {}],
  ['nothing in the millisecond in which it is due', sent, [claimed(10_000)], {}, {}],
  ['one that was early', sent, [claimed(9_999)], {}, { early: 1 }],
  ['one that was early the first time', sent, [claimed(), claimed(9_999)], {}, { early: 1 }],
  [
    'one that was early by its row',
    sent,
    [claimed()],
    { rows: [{ ...row, dueMs: 12_000 }] },
    { early: 1 },
  ],
  [
    'one whose row was due too early',
    sent,
    [claimed(9_500)],
    { rows: [{ ...row, dueMs: 9_400 }] },
    { early: 1 },
  ],
  ['one that was claimed early and never arrived', [], [claimed(9)], {}, { early: 1, passed: 0 }],
  ['one that no worker has sent', sent, [], {}, { early: 1 }],
  ['nothing when it was cancelled', [soon.eventId], [], { cancels: [id], rows: [gone] }, cancelled],
  [
    'one that arrived although it was cancelled',
    sent,
    [claimed()],
    { cancels: [id], rows: [gone] },
    { cancelled: 1, cancelledSent: 1 },
  ],
  [
    'one that was cancelled, sent and not delivered',
    [soon.eventId],
    [claimed()],
    { cancels: [id], rows: [gone] },
    { ...cancelled, cancelledSent: 1 },
  ],
  [
    'one that was cancelled twice',
    [soon.eventId],
    [],
    { cancels: [id, id], rows: [gone] },
    { ...cancelled, cancelledTwice: 1 },
  ],
  [
    'one whose cancellation was not answered, and sent',
    sent,
    [claimed()],
    { loneCancels: [id], rows: [gone] },
    { cancelled: 1, cancelledSent: 1 },
  ],
  ['nothing when a cancellation came too late', sent, [claimed()], { loneCancels: [id] }, {}],
  ['that it waited in line', sent.toReversed(), [claimed()], {}, { passed: 0 }],
  ['nothing to pass it in another unit', sent, [claimed()], {}, { passed: 0 }, { xid: 7 }],
  ['nothing to pass it elsewhere', sent, [claimed()], {}, { passed: 0 }, { account: 'account-3' }],
  ['lanes with others in them', sent, [claimed()], { sharedLanes: 2 }, { sharedLanes: 2 }],
])('finds, of a scheduled event, %s', (_, arrivals, sends, given, found, other = {}) => {
  const scheduling = { ...nothing, ...given }
  const both = [later, { ...soon, ...other }]
  expect(judgeScheduled(both, arrivals, sends, scheduling)).toEqual({ ...fine, ...found })
})

it.each<[string, Partial<Scheduling>, number]>([
  ['does not miss what was cancelled', { cancels: [id], rows: [gone] }, 0],
  ['does not miss what was cancelled without an answer', { loneCancels: [id], rows: [gone] }, 0],
  ['misses what has gone from the table', { rows: [gone] }, 1],
  ['misses what could not be cancelled', { loneCancels: [id] }, 1],
  [
    'misses what has gone after it failed',
    { loneCancels: [id], rows: [{ ...gone, status: 'failed' }] },
    1,
  ],
])('%s', (_, given, lost) => {
  const cancelledIds = cancelledIn({ ...nothing, ...given })
  expect(judge([later, soon], [arrival(soon)], cancelledIds)).toMatchObject({ lost })
})

it('asks for no order of scheduled events', () => {
  const scheduled = journal.map((one) => ({ ...one, dueMs: one.n === 2 ? DUE : null }))
  for (const arrivals of [
    [first, third, second],
    [second, first, third],
  ]) {
    expect(judge(scheduled, arrivals)).toEqual(clean)
  }
  expect(judge(scheduled, [third, first, second])).toEqual({ ...clean, outOfOrder: 1 })
})
