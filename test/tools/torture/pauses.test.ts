// The oracle of pauses can say no, and does not count the time in which an instance could not hear of one.
import { expect, it } from 'vitest'
import { type Disturbance, judgePauses, PROMISE_MS, type SendNote } from './pauses.ts'

const pause = { topic: 'a', from: 1_000, to: 101_000 }
const send = (at: number, topics = ['a'], pid = 1): SendNote => ({ pid, at, topics })

it.each<[string, SendNote, Disturbance[], number]>([
  ['a send that came too late', send(1_001 + PROMISE_MS), [], 1],
  ['no send in time', send(1_000 + PROMISE_MS), [], 0],
  ['no send before the pause', send(500), [], 0],
  ['no send after it', send(101_000), [], 0],
  ['no send to another topic', send(50_000, ['b']), [], 0],
  ['a send to both', send(50_000, ['b', 'a']), [], 1],
  ['no send after a disturbance', send(18_000), [{ from: 10_000, to: 12_500 }], 0],
  [
    'a send after a disturbance of another',
    send(18_000),
    [{ from: 10_000, to: 14_000, pid: 2 }],
    1,
  ],
  ['no send after one of its own', send(18_000), [{ from: 10_000, to: 14_000, pid: 1 }], 0],
  ['a send after a disturbance before the pause', send(18_000), [{ from: 0, to: 2_500 }], 1],
])('finds %s', (_, note, disturbances, sentLate) => {
  expect(judgePauses([pause], disturbances, [note])).toMatchObject({ pauses: 1, sentLate })
})

it('counts disturbances at the same time once', () => {
  const disturbances = [
    { from: 2_000, to: 6_000 },
    { from: 3_000, to: 4_000 },
    { from: 5_000, to: 7_000 },
  ]
  expect(judgePauses([pause], disturbances, [send(11_000)])).toMatchObject({ obeyedAfterMs: 5_000 })
})

it('judges a pause of everything by each topic', () => {
  const everything = { ...pause, topic: null }
  expect(judgePauses([everything], [], [send(50_000, ['b'])])).toMatchObject({ sentLate: 1 })
})
