// The hand-over to several pipelines, without a database: a store that remembers what was claimed, renewed and
// recorded, and loops that say when they were woken.
import { expect, it } from 'vitest'
import { Delivery } from '../../../src/delivery/delivery.ts'
import { OwnEvents } from '../../../src/delivery/own-events.ts'
import { Pauses } from '../../../src/delivery/pauses.ts'
import { Recorder } from '../../../src/delivery/record.ts'
import { Lifecycle } from '../../../src/lifecycle.ts'
import { laneOf } from '../../../src/event/lane.ts'
import { resolveOptions } from '../../../src/options/options.ts'
import { routerPublisher } from '../../../src/publishers/router.ts'
import { Bell } from '../../../src/runtime/bell.ts'
import { silentLogger } from '../../../src/runtime/logger.ts'
import type { Loop } from '../../../src/runtime/loop.ts'
import type { ClaimRequest, Standing } from '../../../src/store/outbox/outbox-store.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'
import { acked, failedAs, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'

const birth = { token: 'mine', deadline: Number.POSITIVE_INFINITY, committedAt: 0 }

function setUp(options: object = {}, answer: Parameters<typeof scriptedPublisher>[0] = acked) {
  const publishers = {
    a: scriptedPublisher(answer, { batchSize: 7 }),
    b: scriptedPublisher(answer),
  }
  const resolved = resolveOptions({
    db: { execute: async () => [], transaction: async () => {} },
    publisher: routerPublisher({ publishers, routes: { a: 'a', b: 'b' }, otherwise: 'b' }),
    ...options,
  })
  const saved = (
    seq: number,
    topic: string,
    follows: readonly number[] | 'unknown' = [],
    aggregateId = 'one',
  ) => {
    const event = outboxEvent({ seq, topic, aggregateId, payload: String(seq) })
    return { event: { ...event, lane: laneOf(event, resolved.orderScopes) }, follows }
  }
  const lifecycle = new Lifecycle(silentLogger)
  const claims: ClaimRequest[] = []
  const recorded: string[] = []
  const store = {
    claim: async (request: ClaimRequest) => {
      claims.push(request)
      return { events: [], isFull: false, waitingLanes: [] }
    },
    dueTopics: async () => ({ topics: ['a', 'b', 'c'], nextInMs: null }),
    wake: async () => {},
    renew: async () => new Map<string, string>(),
    standing: async () => new Map<string, Standing>(),
    recordPublished: async (ids: readonly string[]) => new Set(ids),
    recordFailed: async (refs: readonly { id: string; token: string }[]) => {
      recorded.push(...refs.map(({ id }) => id))
      return new Map(refs.map(({ id, token }) => [id, token]))
    },
  }
  const woken: string[] = []
  const bell = new Bell()
  const own = new OwnEvents(10)
  const delivery = new Delivery({
    store,
    options: resolved,
    recorder: new Recorder({ store, lifecycle, options: resolved, own, bell }),
    own,
    lifecycle,
    pauses: new Pauses({ lifecycle, logger: silentLogger, bell }),
    bell,
    newLoop: (step) => {
      const note = (how: string) => () => void woken.push(`${how} ${step}`)
      const ways = { wake: note('wake'), watch: note('watch') }
      return { start() {}, ...ways, async stop() {} } as unknown as Loop
    },
  })
  delivery.start()
  return { delivery, publishers, claims, recorded, woken, saved, bell }
}

it('claims for each publisher what is its own, as much as it likes', async () => {
  const { delivery, claims } = setUp()
  expect(await delivery.pollOnce(() => false)).toBe(0)
  expect(claims).toMatchObject([
    { from: { topics: ['a'] }, limit: 7 },
    { from: { topics: ['b', 'c'] }, limit: 250 },
  ])
})

it('wakes the fallback of what was left, and no other', async () => {
  const { delivery, publishers, woken, saved } = setUp()
  delivery.handOver([saved(2, 'b', 'unknown')], birth)
  await delivery.drain()
  expect(publishers.b.batches).toEqual([])
  expect(woken).toEqual(['watch poll for b'])
})

it('lets nothing wait across publishers: each has a lane of its own for an aggregate', async () => {
  const { delivery, publishers, saved } = setUp()
  delivery.handOver([saved(1, 'a', 'unknown'), saved(2, 'b'), saved(3, 'a')], birth)
  await delivery.drain()
  expect(publishers.a.batches).toEqual([])
  expect(publishers.b.batches).toEqual([[2]])
})

it('wakes only the fallbacks that have something to do', () => {
  const { delivery, woken, saved } = setUp()
  delivery.handOver([saved(1, 'a')], null)
  expect(woken).toEqual(['watch poll for a'])
})

it('wakes the fallback with each unit of work where there is no immediate path', () => {
  const { delivery, woken, saved } = setUp({ immediate: false })
  delivery.handOver([saved(1, 'a')], null)
  expect(woken).toEqual(['watch poll for a'])
})

it('wakes no fallback for events that are out of reach', async () => {
  const { delivery, woken, saved } = setUp({}, () => failedAs('transient'))
  delivery.handOver([saved(1, 'a')], birth)
  await delivery.drain()
  expect(delivery.unreachable()).toMatchObject([{ publisher: 'a', topic: null }])
  for (let seq = 2; seq < 100; seq += 1) delivery.handOver([saved(seq, 'a')], null)
  expect(woken).toEqual([])
  await delivery.close()
})

it('wakes them all when the bell of the outbox rings', () => {
  const { woken, bell } = setUp()
  bell.ring()
  expect(woken).toEqual(['watch poll for a', 'watch poll for b'])
})

it('accepts a unit of work if one publisher takes its part, and sends all side by side without order', async () => {
  const { delivery, publishers, saved } = setUp({ order: 'none' })
  const events = [saved(1, 'a'), saved(2, 'b'), saved(3, 'a')]
  const prepared = events.map(({ event }) => event)
  expect(delivery.takesAny(prepared)).toBe(true)
  delivery.handOver(events, birth)
  await delivery.drain()
  expect(publishers.a.batches).toEqual([[1, 3]])
  expect(publishers.b.batches).toEqual([[2]])
  expect(delivery.takesAny(prepared)).toBe(false)
})
