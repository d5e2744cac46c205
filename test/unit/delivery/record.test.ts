import { setTimeout as delay } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { type LeasedEvent, Leases } from '../../src/leases.ts'
import { Lifecycle } from '../../src/lifecycle.ts'
import { type Logger, silentLogger } from '../../src/logger.ts'
import { resolveOptions } from '../../src/options.ts'
import { type Outcome, Settler } from '../../src/settle.ts'
import type { Store } from '../../src/store/store.ts'
import { recordingLogger } from '../support/recording-logger.ts'
import { outboxEvent } from '../support/sample-events.ts'

// The one clock that fake timers do not reach.
vi.mock('node:timers/promises', () => ({ setTimeout: vi.fn(async () => {}) }))

it('rests longer and longer while outcomes cannot be recorded, and tells so once', async () => {
  const wasBehind: boolean[] = []
  const settleFailed = async () => {
    wasBehind.push(settler.isBehind)
    if (wasBehind.length <= 8) throw new Error('away')
    return new Map<string, string>()
  }
  const logger = recordingLogger()
  const options = resolveOptions({
    db: { execute: async () => [], transaction: async () => {} },
    publisher: { name: 'none', publish: async () => [] },
    logger,
  })
  const leases = new Leases({ renew: async () => new Map() }, options.thresholdMs)
  const wakePoller = vi.fn()
  const store = { settleFailed, settlePublished: async () => new Set<string>() }
  const settler = new Settler(store, leases, new Lifecycle(logger), options, wakePoller)
  const leased = { event: outboxEvent(), token: 'mine', committedAt: null, deadline: 0 }
  await settler.record([{ leased, path: 'fallback', kind: 'untried' }])

  const rests = vi.mocked(delay).mock.calls.map(([ms]) => ms)
  expect(rests).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
  expect(wasBehind).toEqual([false, ...Array<boolean>(8).fill(true)])
  // While it was behind the poller took nothing.
  expect(settler.isBehind).toBe(false)
  expect(wakePoller).toHaveBeenCalledOnce()
  expect(logger.lines).toMatchObject([
    {
      level: 'error',
      fields: { outcomes: 1 },
      message: expect.stringMatching(/could not record outcomes/),
    },
    { level: 'info', message: 'outcomes are recorded again' },
  ])
})

/** A settler with a store that answers as told; tells what it told. */
function setUp(
  store: Partial<Pick<Store<never>, 'settleFailed' | 'settlePublished'>>,
  logger: Logger = silentLogger,
) {
  const options = resolveOptions({
    logger,
    db: { execute: async () => [], transaction: async () => {} },
    publisher: { name: 'none', publish: async () => [] },
  })
  const lifecycle = new Lifecycle(options.logger)
  const leases = new Leases({ renew: async () => new Map() }, options.thresholdMs)
  const told: string[] = []
  for (const name of ['published', 'duplicate', 'failed', 'dead'] as const) {
    lifecycle.events.on(`event:${name}`, () => told.push(name))
  }
  const settler = new Settler(
    { settleFailed: async () => new Map(), settlePublished: async () => new Set(), ...store },
    leases,
    lifecycle,
    options,
    () => {},
  )
  return { settler, told }
}

const leasedAs = (token: string, event = outboxEvent()): LeasedEvent => {
  return { event, token, committedAt: null, deadline: 0 }
}
const ack = (leased: LeasedEvent): Outcome => {
  const { topic, aggregateId: key } = leased.event
  const success = { ok: true, topic, key, partition: null, offset: null } as const
  return { leased, path: 'fallback', kind: 'published', success, latencyMs: null }
}

it('tells of the failure under the token that holds, and not of one that was fenced', async () => {
  const held = leasedAs('new')
  const stale = leasedAs('old', held.event)
  const { settler, told } = setUp({ settleFailed: async () => new Map([[held.event.id, 'new']]) })
  const error = new Error('no')
  await settler.record([
    { leased: stale, path: 'immediate', kind: 'dead', error },
    { leased: held, path: 'fallback', kind: 'failed', error, counts: true, retryInMs: 0 },
  ])
  expect(told).toEqual(['failed'])
})

it('says after the end, when it tries no more, that an outcome is left to others', async () => {
  const logger = recordingLogger()
  const { settler } = setUp({ settlePublished: () => Promise.reject(new Error('closed')) }, logger)
  settler.setPatience(false)
  await settler.record([ack(leasedAs('one'))])
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
  const { settler, told } = setUp({ settlePublished: async (ids) => new Set(ids) })
  await settler.record([ack(first), ack(leasedAs('new', first.event))])
  expect(told).toEqual(['published', 'published', 'duplicate'])
})

it('does not take an ack for a duplicate because its record had to be repeated', async () => {
  const [sent, refused] = [leasedAs('one'), leasedAs('two')]
  const published = new Set<string>()
  const { settler, told } = setUp({
    settlePublished: async (ids) => {
      const news = new Set(ids.filter((id) => !published.has(id)))
      for (const id of ids) published.add(id)
      return news
    },
    settleFailed: vi
      .fn<Store<never>['settleFailed']>()
      .mockRejectedValueOnce(new Error('away'))
      .mockResolvedValue(new Map()),
  })
  await settler.record([ack(sent), { leased: refused, path: 'fallback', kind: 'untried' }])
  expect(told).toEqual(['published'])
})
