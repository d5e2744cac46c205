import { setTimeout as delay } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import type { LeasedEvent, Outcome } from '../../../src/delivery/leased-event.ts'
import { Lifecycle } from '../../../src/lifecycle.ts'
import { type Logger, silentLogger } from '../../../src/runtime/logger.ts'
import { resolveOptions } from '../../../src/options/options.ts'
import { OwnEvents } from '../../../src/delivery/own-events.ts'
import { Recorder } from '../../../src/delivery/record.ts'
import { Bell } from '../../../src/runtime/bell.ts'
import type { Store } from '../../../src/store/outbox/outbox-store.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'

// The one clock that fake timers do not reach.
vi.mock('node:timers/promises', () => ({ setTimeout: vi.fn(async () => {}) }))

it('rests longer and longer while outcomes cannot be recorded, and tells so once', async () => {
  const wasBehind: boolean[] = []
  const recordFailed = async () => {
    wasBehind.push(recorder.isBehind)
    if (wasBehind.length <= 8) throw new Error('away')
    return new Map<string, string>()
  }
  const logger = recordingLogger()
  const options = resolveOptions({
    db: { execute: async () => [], transaction: async () => {} },
    publisher: { name: 'none', publish: async () => [] },
    logger,
  })
  const rung = vi.fn()
  const bell = new Bell()
  bell.onRing(rung)
  const store = { recordFailed, recordPublished: async () => new Set<string>() }
  const own = new OwnEvents(10)
  const recorder = new Recorder({ store, lifecycle: new Lifecycle(logger), options, own, bell })
  await recorder.giveBack([leasedAs('mine')])

  const rests = vi.mocked(delay).mock.calls.map(([ms]) => ms)
  expect(rests).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
  expect(wasBehind).toEqual([false, ...Array<boolean>(8).fill(true)])
  // While it was behind the poller took nothing.
  expect(recorder.isBehind).toBe(false)
  expect(rung).toHaveBeenCalledOnce()
  expect(logger.lines).toMatchObject([
    {
      level: 'error',
      fields: { outcomes: 1 },
      message: expect.stringMatching(/could not record outcomes/),
    },
    { level: 'info', message: 'outcomes can be recorded again' },
  ])
})

/** A recorder with a store that answers as told; tells what it told. */
function setUp(
  store: Partial<Pick<Store<never>, 'recordFailed' | 'recordPublished'>>,
  logger: Logger = silentLogger,
) {
  const options = resolveOptions({
    logger,
    db: { execute: async () => [], transaction: async () => {} },
    publisher: { name: 'none', publish: async () => [] },
  })
  const lifecycle = new Lifecycle(options.logger)
  const told: string[] = []
  for (const name of ['published', 'duplicate', 'failed', 'dead'] as const) {
    lifecycle.events.on(`event:${name}`, () => told.push(name))
  }
  const own = new OwnEvents(10)
  const recorder = new Recorder({
    store: {
      recordFailed: async () => new Map(),
      recordPublished: async () => new Set(),
      ...store,
    },
    lifecycle,
    options,
    own,
    bell: new Bell(),
  })
  return { recorder, told, own }
}

function leasedAs(token: string, event = outboxEvent()): LeasedEvent {
  return { event, token, path: 'fallback', committedAt: null, deadline: 0, outcome: null }
}
const withOutcome = (leased: LeasedEvent, outcome: Outcome): LeasedEvent => ({ ...leased, outcome })
const acked = (leased: LeasedEvent) => {
  const { topic, aggregateId: key } = leased.event
  const success = { ok: true, topic, key, partition: null, offset: null } as const
  return withOutcome(leased, { kind: 'published', success, latencyMs: null })
}

it('tells of the failure under the token that holds, and not of one that was fenced', async () => {
  const held = leasedAs('new')
  const stale = leasedAs('old', held.event)
  const { recorder, told } = setUp({ recordFailed: async () => new Map([[held.event.id, 'new']]) })
  const error = new Error('no')
  await recorder.record([
    withOutcome(stale, { kind: 'dead', error }),
    withOutcome(held, { kind: 'failed', error, counts: true, retryInMs: 0 }),
  ])
  expect(told).toEqual(['failed'])
})

it('says after the end, when it tries no more, that an outcome is left to others', async () => {
  const logger = recordingLogger()
  const { recorder } = setUp({ recordPublished: () => Promise.reject(new Error('closed')) }, logger)
  recorder.setPatience(false)
  await recorder.record([acked(leasedAs('one'))])
  expect(logger.lines).toMatchObject([
    {
      level: 'warn',
      fields: { outcomes: 1 },
      message: expect.stringMatching(/came too late to be recorded/),
    },
  ])
})

it('tells of a duplicate when one batch holds two acks of a row', async () => {
  const first = leasedAs('old')
  const { recorder, told } = setUp({ recordPublished: async (ids) => new Set(ids) })
  await recorder.record([acked(first), acked(leasedAs('new', first.event))])
  expect(told).toEqual(['published', 'published', 'duplicate'])
})

it('tells, after a statement that failed, of the failures that it recorded all the same', async () => {
  const [dead, failed, fenced] = [leasedAs('one'), leasedAs('two'), leasedAs('three')]
  const error = new Error('no')
  const asked: (boolean | undefined)[][] = []
  const { recorder, told } = setUp({
    recordFailed: async (failures) => {
      asked.push(failures.map(({ isRepeated }) => isRepeated))
      if (asked.length === 1) throw new Error('no answer')
      return new Map([dead, failed].map(({ event, token }) => [event.id, token]))
    },
  })
  await recorder.record([
    withOutcome(dead, { kind: 'dead', error }),
    withOutcome(failed, { kind: 'failed', error, counts: true, retryInMs: 0 }),
    withOutcome(fenced, { kind: 'dead', error }),
  ])
  expect(told).toEqual(['dead', 'failed'])
  expect(recorder.endedCount).toBe(1)
  expect(asked).toEqual([
    [false, false, false],
    [true, true, true],
  ])
})

it('does not take an ack for a duplicate because its record had to be repeated', async () => {
  const [sent, refused] = [leasedAs('one'), leasedAs('two')]
  const published = new Set<string>()
  const { recorder, told } = setUp({
    recordPublished: async (ids) => {
      const news = new Set(ids.filter((id) => !published.has(id)))
      for (const id of ids) published.add(id)
      return news
    },
    recordFailed: vi
      .fn<Store<never>['recordFailed']>()
      .mockRejectedValueOnce(new Error('away'))
      .mockResolvedValue(new Map()),
  })
  await recorder.record([acked(sent), withOutcome(refused, { kind: 'untried' })])
  expect(told).toEqual(['published'])
})

it('tells flush() what became of the events of this process, but not of an outage or a fenced failure', async () => {
  const all = ['sent', 'dead', 'refused', 'away', 'fenced'].map((token) => leasedAs(token))
  const [sent, dead, refused, away, fenced] = all as [LeasedEvent, ...LeasedEvent[]]
  const held = new Map(all.map(({ event, token }) => [event.id, token]))
  held.set(fenced!.event.id, 'another')
  const { recorder, own } = setUp({ recordFailed: async () => held })
  for (const { event } of all) own.note(event)
  const known = own.all()
  const error = new Error('no')
  await recorder.record([
    acked(sent),
    withOutcome(dead!, { kind: 'dead', error }),
    withOutcome(refused!, { kind: 'failed', error, counts: true, retryInMs: 0 }),
    withOutcome(away!, { kind: 'failed', error, counts: false, retryInMs: 0 }),
    withOutcome(fenced!, { kind: 'dead', error }),
  ])
  const failure = { attempts: 1, error: 'Error: no' }
  expect(known.map((one) => one.failure)).toEqual([
    null,
    { ...failure, isDead: true },
    { ...failure, isDead: false },
    undefined,
    undefined,
  ])
})
