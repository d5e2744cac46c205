import { afterEach, expect, it, vi } from 'vitest'
import { Circuits } from '../../src/circuit.ts'
import { FastPath } from '../../src/fast-path.ts'
import { Leases } from '../../src/leases.ts'
import { Lifecycle } from '../../src/lifecycle.ts'
import { silentLogger } from '../../src/logger.ts'
import { resolveOptions } from '../../src/options.ts'
import { outboxEvent } from '../support/sample-events.ts'

const options = resolveOptions({
  db: { execute: async () => [], transaction: async () => {} },
  publisher: { name: 'none', publish: async () => [] },
})
const lease = { token: 'mine', deadline: 0, committedAt: 0 }
const saved = (seq: number, after: number | null, aggregateId = 'one') => {
  return { ...outboxEvent({ seq, aggregateId }), after }
}

let now = 0
afterEach(() => {
  vi.restoreAllMocks()
})

/** One whose sends all succeed; tells the `seq` of each event, batch by batch. */
function setUp() {
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  const circuits = new Circuits('none', new Lifecycle(silentLogger), silentLogger, () => {})
  const leases = new Leases({ renew: async () => new Map() }, options.thresholdMs)
  const sent: number[][] = []
  const left: number[] = []
  const fastPath = new FastPath(options, circuits, leases, false, {
    deliver: async (batch) => {
      sent.push(batch.map(({ event }) => event.seq))
      leases.drop(batch)
      return { unsent: new Set(), recorded: Promise.resolve() }
    },
    giveBack: async (leased) => void left.push(...leased.map(({ event }) => event.seq)),
  })
  fastPath.open()
  return { fastPath, circuits, sent, left }
}

it('knows for the length of a lease what went out through a lane, then forgets the lane', async () => {
  const { fastPath, sent } = setUp()
  fastPath.accept([saved(1, null)], lease)
  await fastPath.idle()
  now += options.thresholdMs
  fastPath.sweep()
  // Its INSERT ran before the record of the first was written.
  fastPath.accept([saved(2, 1)], lease)
  await fastPath.idle()
  expect(sent).toEqual([[1], [2]])

  now += options.thresholdMs + 1
  fastPath.sweep()
  fastPath.accept([saved(3, 2)], lease)
  await fastPath.idle()
  expect(sent).toEqual([[1], [2]])
})

it('keeps a lane that has events waiting, however old it is', async () => {
  const { fastPath, sent } = setUp()
  fastPath.accept([saved(1, null)], lease)
  now += options.thresholdMs + 1
  fastPath.sweep()
  fastPath.accept([saved(2, 1)], lease)
  await fastPath.idle()
  expect(sent.flat()).toEqual([1, 2])
})

it('leaves the rest of an aggregate too once it has left one event of the unit of work', async () => {
  const { fastPath, circuits, sent, left } = setUp()
  // Between the save and the end of COMMIT.
  circuits.failed('away', new Error('away'))
  const events = [saved(1, null), saved(2, null), saved(3, null, 'other')]
  fastPath.accept([{ ...events[0]!, topic: 'away' }, ...events.slice(1)], lease)
  await fastPath.idle()
  circuits.stop()
  expect(sent).toEqual([[3]])
  expect(left).toEqual([1, 2])
})

it('leaves an event behind one that never came through its lane', async () => {
  const { fastPath, sent, left } = setUp()
  fastPath.accept([saved(1, null)], lease)
  fastPath.accept([saved(3, 2)], lease)
  await fastPath.idle()
  expect(sent).toEqual([[1]])
  expect(left).toEqual([3])
})

it('lets nothing pass an event that it has left, be it saved earlier than what went out before', async () => {
  const { fastPath, circuits, sent, left } = setUp()
  fastPath.accept([saved(9, null)], lease)
  await fastPath.idle()
  circuits.failed('away', new Error('away'))
  fastPath.accept([{ ...saved(8, null), topic: 'away' }], lease)
  fastPath.accept([saved(10, 9)], lease)
  await fastPath.idle()
  circuits.stop()
  expect(sent).toEqual([[9]])
  expect(left).toEqual([8, 10])
})

it('sends at most 500 events at once, and the rest of a long lane after them', async () => {
  const { fastPath, sent } = setUp()
  fastPath.accept(
    Array.from({ length: 1_200 }, (_, seq) => saved(seq, null)),
    lease,
  )
  await fastPath.idle()
  expect(sent.map((batch) => batch.length)).toEqual([500, 500, 200])
  expect(sent.flat()).toEqual(Array.from({ length: 1_200 }, (_, seq) => seq))
})
