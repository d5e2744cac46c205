import { afterEach, expect, it, vi } from 'vitest'
import { Circuits } from '../../../src/delivery/circuits.ts'
import { Gate } from '../../../src/delivery/gate.ts'
import { Immediate } from '../../../src/delivery/immediate.ts'
import type { LeasedEvent } from '../../../src/delivery/leased-event.ts'
import { Leases } from '../../../src/delivery/leases.ts'
import { OwnEvents } from '../../../src/delivery/own-events.ts'
import { Pauses } from '../../../src/delivery/pauses.ts'
import type { Recorder } from '../../../src/delivery/record.ts'
import type { Sender } from '../../../src/delivery/send.ts'
import { Lifecycle } from '../../../src/lifecycle.ts'
import { resolveOptions } from '../../../src/options/options.ts'
import { EVERY_TOPIC } from '../../../src/publishers/router.ts'
import { Bell } from '../../../src/runtime/bell.ts'
import { silentLogger } from '../../../src/runtime/logger.ts'
import { acked } from '../../support/doubles/scripted-publisher.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'

const options = resolveOptions({
  db: { execute: async () => [], transaction: async () => {} },
  publisher: { name: 'none', publish: async () => [] },
})
const birth = { token: 'mine', deadline: 0, committedAt: 0 }
const saved = (seq: number, follows: readonly number[] | 'unknown' = [], aggregateId = 'one') => {
  return { event: outboxEvent({ seq, aggregateId }), follows }
}
const onTopic = (one: ReturnType<typeof saved>, topic: string) => ({
  ...one,
  event: { ...one.event, topic },
})
const published = (leased: LeasedEvent) => {
  const success = acked(leased.event) as never
  leased.outcome = { kind: 'published', success, latencyMs: null }
}

let now = 0
afterEach(() => {
  vi.restoreAllMocks()
})

/** Sends end as `settle` says; `sent` has the seqs of each batch, `left` those that were given back. */
function setUp(settle: (leased: LeasedEvent) => void | Promise<void> = published) {
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  const lifecycle = new Lifecycle(silentLogger)
  const bells = { bell: new Bell(), leftBehind: new Bell() }
  const circuits = new Circuits({ publisher: 'none', lifecycle, logger: silentLogger, ...bells })
  const leases = new Leases({ renew: async () => new Map() }, options.thresholdMs)
  const pauses = new Pauses({ lifecycle, logger: silentLogger, bell: bells.bell })
  const { maxInFlight } = options
  const gate = new Gate({ circuits, pauses, leases, topics: EVERY_TOPIC, maxInFlight })
  const sent: number[][] = []
  const left: number[] = []
  const looks = vi.fn()
  bells.leftBehind.onRing(looks)
  const sender = {
    send: async (batch: readonly LeasedEvent[]) => {
      sent.push(batch.map(({ event }) => event.seq))
      for (const leased of batch) await settle(leased)
      return { recorded: Promise.resolve(), over: Promise.resolve() }
    },
  } as unknown as Sender
  const recorder = {
    giveBack: async (events: readonly LeasedEvent[]) => {
      left.push(...events.map(({ event }) => event.seq))
    },
  } as unknown as Recorder
  const { leftBehind } = bells
  const own = new OwnEvents(10)
  const shared = { options, gate, leases, sender, recorder, own, leftBehind }
  const immediate = new Immediate({ ...shared, publisher: {} })
  gate.startTaking()
  return { immediate, circuits, leases, own, sent, left, looks }
}

it('knows for the length of a lease what was acknowledged, then forgets it', async () => {
  const { immediate, sent, left } = setUp()
  immediate.accept([saved(1)], birth)
  await immediate.idle()
  now += options.thresholdMs
  immediate.sweep()
  // Its INSERT ran before the record of the first was written.
  immediate.accept([saved(2, [1])], birth)
  await immediate.idle()
  expect(sent).toEqual([[1], [2]])

  now += options.thresholdMs
  immediate.sweep()
  immediate.accept([saved(3, [1])], birth)
  await immediate.idle()
  expect(sent).toEqual([[1], [2]])
  expect(left).toEqual([3])
})

it('knows what waits, however old it is', async () => {
  const { immediate, sent } = setUp()
  immediate.accept([saved(1)], birth)
  for (let n = 0; n < 3; n += 1) {
    now += options.thresholdMs
    immediate.sweep()
  }
  immediate.accept([saved(2, [1])], birth)
  await immediate.idle()
  expect(sent.flat()).toEqual([1, 2])
})

it('leaves the rest of a lane too once it has left one event of the unit of work', async () => {
  const { immediate, circuits, sent, left } = setUp()
  // Between the save and the end of COMMIT.
  circuits.failed('away', new Error('away'))
  const events = [saved(1), saved(2), saved(3, [], 'other')]
  immediate.accept([onTopic(events[0]!, 'away'), ...events.slice(1)], birth)
  await immediate.idle()
  circuits.stop()
  expect(sent).toEqual([[3]])
  expect(left).toEqual([1, 2])
})

it('leaves an event behind one that never came through here', async () => {
  const { immediate, sent, left } = setUp()
  immediate.accept([saved(1)], birth)
  immediate.accept([saved(3, [2])], birth)
  await immediate.idle()
  expect(sent).toEqual([[1]])
  expect(left).toEqual([3])
})

it('leaves an event behind one below the last of those that went out', async () => {
  const { immediate, sent, left } = setUp()
  // Saved after 0, whose COMMIT nobody has heard of yet.
  immediate.accept([saved(1)], birth)
  await immediate.idle()
  immediate.accept([saved(2, [0, 1])], birth)
  await immediate.idle()
  expect(sent).toEqual([[1]])
  expect(left).toEqual([2])
})

it('leaves an event of which the save could not tell what it has to follow', async () => {
  const { immediate, left } = setUp()
  immediate.accept([saved(1, 'unknown')], birth)
  await immediate.idle()
  expect(left).toEqual([1])
})

it.each(['failed', 'unknown', 'untried'] as const)(
  'gives back what waits behind an event that is %s, and lets nothing follow it later',
  async (kind) => {
    const { immediate, sent, left, looks } = setUp((leased) => {
      if (leased.event.seq !== 1) return published(leased)
      // Comes while the first is in flight.
      immediate.accept([saved(2, [1])], birth)
      leased.outcome = { kind, error: new Error('no'), counts: false, retryInMs: 0 } as never
    })
    immediate.accept([saved(1)], birth)
    await immediate.idle()
    immediate.accept([saved(3, [1])], birth)
    immediate.accept([saved(4, [], 'other')], birth)
    await immediate.idle()
    expect(sent).toEqual([[1], [4]])
    expect(left).toEqual([2, 3])
    expect(looks).toHaveBeenCalled()
  },
)

it('lets what waits behind a dead letter go on, and what comes later go by the table', async () => {
  const { immediate, sent, left } = setUp((leased) => {
    if (leased.event.seq !== 1) return published(leased)
    immediate.accept([saved(2, [1])], birth)
    leased.outcome = { kind: 'dead', error: new Error('no') }
  })
  immediate.accept([saved(1)], birth)
  await immediate.idle()
  expect(sent).toEqual([[1], [2]])
  // The table still calls the first pending: its record is under way, or it was retried.
  immediate.accept([saved(3, [1])], birth)
  await immediate.idle()
  expect(left).toEqual([3])
})

it('drops every lease that it took, whatever became of the event', async () => {
  const { immediate, leases } = setUp((leased) => {
    if (leased.event.seq > 1) return published(leased)
    leased.outcome = { kind: 'untried' }
  })
  immediate.accept([saved(1), saved(2), saved(3, [], 'other')], birth)
  expect(leases.size).toBe(3)
  await immediate.idle()
  await new Promise((resolve) => setImmediate(resolve))
  expect(leases.size).toBe(0)
})

it('keeps nothing for flush() of what goes out at once, and everything that leaves without an end', async () => {
  const { immediate, own } = setUp((leased) => {
    if (leased.event.seq !== 2) return published(leased)
    leased.outcome = { kind: 'unknown' }
  })
  immediate.accept([saved(1, [], 'one')], birth)
  await immediate.idle()
  expect(own.all()).toEqual([])
  const events = [saved(2, [], 'two'), saved(3, [2], 'two'), saved(4, 'unknown', 'four')]
  immediate.accept(events, birth)
  await immediate.idle()
  // In the same batch as the second, the third went out; the fourth was turned away.
  expect(own.all().map(({ event }) => event.aggregateId)).toEqual(['four', 'two'])
})

it('does not call for a look at what is out of reach', async () => {
  const { immediate, circuits, looks } = setUp((leased) => {
    circuits.failed(leased.event.topic, new Error('away'))
    leased.outcome = { kind: 'failed', error: new Error('away'), counts: false, retryInMs: 0 }
  })
  immediate.accept([saved(1)], birth)
  await immediate.idle()
  await new Promise((resolve) => setImmediate(resolve))
  circuits.stop()
  expect(looks).not.toHaveBeenCalled()
})

it('sends at most 500 events at once, and the rest of a long lane after them', async () => {
  const { immediate, sent } = setUp()
  immediate.accept(
    Array.from({ length: 1_200 }, (_, seq) => saved(seq)),
    birth,
  )
  await immediate.idle()
  expect(sent.map((batch) => batch.length)).toEqual([500, 500, 200])
  expect(sent.flat()).toEqual(Array.from({ length: 1_200 }, (_, seq) => seq))
})
