// The oracle of the torture can say no: each kind of failure is found, and told from the others.
import { expect, it } from 'vitest'
import { type Arrival, judge, type JournalEntry } from './oracle.ts'

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
