import { performance } from 'node:perf_hooks'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Circuits } from '../../../src/delivery/circuits.ts'
import { Gate } from '../../../src/delivery/gate.ts'
import type { LeasedEvent } from '../../../src/delivery/leased-event.ts'
import { Leases } from '../../../src/delivery/leases.ts'
import { OwnEvents } from '../../../src/delivery/own-events.ts'
import { Pauses } from '../../../src/delivery/pauses.ts'
import { Recorder } from '../../../src/delivery/record.ts'
import { Sender } from '../../../src/delivery/send.ts'
import { Lifecycle } from '../../../src/lifecycle.ts'
import type { PayloadHooks } from '../../../src/event/stored-payload.ts'
import { resolveOptions } from '../../../src/options/options.ts'
import { EVERY_TOPIC } from '../../../src/publishers/router.ts'
import { Bell } from '../../../src/runtime/bell.ts'
import { silentLogger } from '../../../src/runtime/logger.ts'
import { acked, failedAs, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'
import { defer } from '../../support/timing/deferred.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function setUp(
  answer: Parameters<typeof scriptedPublisher>[0],
  settlesWithinMs = 30_000,
  payloads?: PayloadHooks,
) {
  const publisher = scriptedPublisher(answer, { settlesWithinMs })
  const options = resolveOptions({
    db: { execute: async () => [], transaction: async () => {} },
    publisher,
    ...(payloads && { payloads }),
  })
  const lifecycle = new Lifecycle(silentLogger)
  const bell = new Bell()
  const logger = silentLogger
  const circuits = new Circuits({ publisher: 'scripted', lifecycle, logger, bell })
  const leases = new Leases({ renew: async () => new Map() }, options.thresholdMs)
  const pauses = new Pauses({ lifecycle, logger, bell })
  const gate = new Gate({ circuits, pauses, leases, topics: EVERY_TOPIC, maxInFlight: 10 })
  const written = defer()
  const recorded: string[][] = []
  const store = {
    recordPublished: async (ids: readonly string[]) => {
      recorded.push([...ids])
      await written.promise
      return new Set(ids)
    },
    recordFailed: async () => new Map<string, string>(),
  }
  const recorder = new Recorder({ store, options, lifecycle, bell, own: new OwnEvents(10) })
  const sender = new Sender({
    name: 'scripted',
    publisher,
    lifecycle,
    options,
    gate,
    circuits,
    recorder,
  })
  return { sender, circuits, publisher, recorded, written }
}

const leased = (
  overrides: Parameters<typeof outboxEvent>[0] = {},
  freshMs = 7_000,
): LeasedEvent => ({
  event: outboxEvent(overrides),
  token: 'mine',
  path: 'immediate',
  committedAt: null,
  deadline: performance.now() + freshMs,
  outcome: null,
})

/** Whether it has resolved by now, with everything done that could be done at once. */
async function isOver(promise: Promise<unknown>): Promise<boolean> {
  let over = false
  void promise.then(() => {
    over = true
  })
  await vi.advanceTimersByTimeAsync(0)
  return over
}

it('gives each event its outcome before it returns, and records them after', async () => {
  const { sender, recorded, written } = setUp((event) =>
    event.payload === '"bad"' ? failedAs('permanent') : acked(event),
  )
  const batch = [leased(), leased({ payload: '"bad"' })]
  const { over } = await sender.send(batch)
  expect(batch.map(({ outcome }) => outcome!.kind)).toEqual(['published', 'dead'])
  expect(await isOver(over)).toBe(false)
  written.resolve()
  expect(await isOver(over)).toBe(true)
  expect(recorded).toEqual([[batch[0]!.event.id]])
})

it('sends nothing on a stale lease, nor what follows it in its lane', async () => {
  const { sender, publisher } = setUp(acked)
  const batch = [leased({ lane: 1 }, 100), leased({ lane: 1 }), leased({ lane: 2, payload: '2' })]
  await sender.send(batch)
  expect(publisher.batches).toEqual([[2]])
  expect(batch.map(({ outcome }) => outcome!.kind)).toEqual(['untried', 'untried', 'published'])
})

it('takes a send that is past its timeout for unknown, and its destination for out of reach', async () => {
  const answer = defer<ReturnType<typeof acked>>()
  const { sender, circuits } = setUp(() => answer.promise)
  const one = leased()
  const sending = sender.send([one])
  await vi.advanceTimersByTimeAsync(5_000)
  const { recorded } = await sending
  expect(one.outcome).toEqual({ kind: 'unknown' })
  expect(await isOver(recorded)).toBe(true)
  expect(circuits.unreachable()).toMatchObject([{ publisher: 'scripted', topic: null }])
  circuits.stop()
})

it('keeps the leases of a late ack until it is recorded, however long that takes', async () => {
  const answer = defer<ReturnType<typeof acked>>()
  const { sender, circuits, recorded, written } = setUp(() => answer.promise)
  const one = leased()
  const sending = sender.send([one])
  await vi.advanceTimersByTimeAsync(5_000)
  const { over } = await sending
  answer.resolve(acked(one.event))
  expect(await isOver(over)).toBe(false)
  expect(recorded).toEqual([[one.event.id]])
  await vi.advanceTimersByTimeAsync(3_600_000)
  expect(await isOver(over)).toBe(false)
  written.resolve()
  expect(await isOver(over)).toBe(true)
  circuits.stop()
})

it('lets the leases go when the client should have given up, and takes an ack even after that', async () => {
  const answer = defer<ReturnType<typeof acked>>()
  const { sender, circuits, recorded } = setUp(() => answer.promise, 30_000)
  const one = leased()
  const sending = sender.send([one])
  await vi.advanceTimersByTimeAsync(5_000)
  const { over } = await sending
  await vi.advanceTimersByTimeAsync(24_999)
  expect(await isOver(over)).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(await isOver(over)).toBe(true)
  await sender.idle()
  answer.resolve(acked(one.event))
  await vi.advanceTimersByTimeAsync(0)
  expect(recorded).toEqual([[one.event.id]])
  circuits.stop()
})

it('keeps the leases for longer when payloads are read first, as the client begins later', async () => {
  const plain = defer<string>()
  const answer = defer<ReturnType<typeof acked>>()
  const { sender, circuits, publisher } = setUp(() => answer.promise, 30_000, {
    read: () => plain.promise,
  })
  const sending = sender.send([leased()])
  await vi.advanceTimersByTimeAsync(2_499)
  expect(publisher.batches).toEqual([])
  plain.resolve('"read"')
  await vi.advanceTimersByTimeAsync(2_501)
  expect(publisher.batches).toEqual([['read']])
  const { over } = await sending
  await vi.advanceTimersByTimeAsync(27_499)
  expect(await isOver(over)).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(await isOver(over)).toBe(true)
  circuits.stop()
})

it('gives up on a payload that cannot be read in time, and sends the others', async () => {
  const { sender, circuits, publisher } = setUp(acked, 30_000, {
    read: (stored) => (stored === '"stuck"' ? new Promise(() => {}) : stored),
  })
  const of = (payload: string, topic: string) => leased({ payload: JSON.stringify(payload), topic })
  const batch = [of('one', 'a'), of('stuck', 'b'), of('two', 'a')]
  const sending = sender.send(batch)
  await vi.advanceTimersByTimeAsync(2_500)
  await sending
  expect(publisher.batches).toEqual([['one', 'two']])
  expect(batch.map(({ outcome }) => outcome)).toMatchObject([
    { kind: 'published' },
    { kind: 'failed', counts: false },
    { kind: 'published' },
  ])
  expect(circuits.unreachable()).toMatchObject([{ topic: 'b' }])
  circuits.stop()
})

it('sends nothing whose lease went stale while payloads were read, nor what follows it in its lane', async () => {
  const batch = [leased({ lane: 1 }), leased({ lane: 1 }), leased({ lane: 2, payload: '2' })]
  const { sender, publisher } = setUp(acked, 30_000, {
    read: async (stored) => {
      // As after a function was frozen in the middle of the call.
      batch[0]!.deadline = performance.now() + 100
      return stored
    },
  })
  await sender.send(batch)
  expect(publisher.batches).toEqual([[2]])
  expect(batch.map(({ outcome }) => outcome!.kind)).toEqual(['untried', 'untried', 'published'])
})

it('sends nothing that is read only after the publisher was closed, and sends what comes then', async () => {
  const plain = defer<string>()
  const { sender, publisher } = setUp(acked, 30_000, { read: () => plain.promise })
  const [one, next] = [leased(), leased()]
  const sending = sender.send([one])
  sender.close()
  plain.resolve('"read"')
  await sending
  expect(publisher.batches).toEqual([])
  expect(one.outcome).toEqual({ kind: 'untried' })
  await sender.send([next])
  expect(publisher.batches).toEqual([['read']])
})

it('takes a failure that blames the topic for an answer of the broker', async () => {
  const { sender, circuits } = setUp(() => failedAs('transient', 'topic'))
  circuits.failed(null, new Error('away'))
  await vi.advanceTimersByTimeAsync(500)
  await sender.send([leased({ topic: 'bad' })])
  expect(circuits.unreachable()).toMatchObject([{ publisher: 'scripted', topic: 'bad' }])
  circuits.stop()
})

it.each([
  [undefined, 'undefined instead of an array'],
  [[], '0 results for 1 events'],
  [[null], "a result whose 'ok' is neither true nor false"],
  [
    [{ ok: false, kind: 'temporary', error: new Error('no') }],
    "a failure whose 'kind' is 'temporary'",
  ],
  [[{ ok: false, kind: 'held' }], "a failure whose 'error' is undefined"],
  [
    [{ ok: false, kind: 'held', error: new Error('no'), scope: 'topic' }],
    "a failure with 'scope', which is now called 'blames'",
  ],
  [
    [{ ok: false, kind: 'transient', error: new Error('no'), blames: 'partition' }],
    "a failure whose 'blames' is 'partition'",
  ],
])('says what is wrong with %o as the results of a publisher', async (results, breach) => {
  const { sender, publisher } = setUp(acked)
  publisher.publish = async () => results as never
  const batch = [leased()]
  await sender.send(batch)
  expect(batch[0]!.outcome).toMatchObject({
    kind: 'failed',
    counts: false,
    error: expect.objectContaining({ message: expect.stringContaining(breach) }),
  })
})

it('takes an ack for a fact, whatever is wrong with another result', async () => {
  const { sender, publisher, circuits } = setUp(acked)
  publisher.publish = async ([first]) => [acked(first!), { ok: false, kind: 'odd' } as never]
  const batch = [leased({ topic: 'good' }), leased({ topic: 'bad' })]
  await sender.send(batch)
  expect(batch.map(({ outcome }) => outcome!.kind)).toEqual(['published', 'failed'])
  expect(circuits.unreachable()).toMatchObject([{ publisher: 'scripted', topic: 'bad' }])
})
