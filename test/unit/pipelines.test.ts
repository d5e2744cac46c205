// The hand-over to several pipelines, without a database: a store that remembers what was claimed, renewed and
// recorded, and loops that say when they were woken.
import { expect, it } from 'vitest'
import type { Loop } from '../../src/loop.ts'
import { Lifecycle } from '../../src/lifecycle.ts'
import { silentLogger } from '../../src/logger.ts'
import { resolveOptions } from '../../src/options.ts'
import { Pipelines } from '../../src/pipelines.ts'
import { routerPublisher } from '../../src/publishers/router.ts'
import { Settler } from '../../src/settle.ts'
import type { ClaimRequest } from '../../src/store/store.ts'
import { outboxEvent } from '../support/sample-events.ts'
import { acked, scriptedPublisher } from '../support/scripted-publisher.ts'

const lease = { token: 'mine', deadline: Number.POSITIVE_INFINITY, committedAt: 0 }
const saved = (seq: number, topic: string, after: number | null = null, aggregateId = 'one') => {
  return { ...outboxEvent({ seq, topic, aggregateId, payload: String(seq) }), after }
}

function setUp(options: object = {}) {
  const publishers = { a: scriptedPublisher(acked, { batchSize: 7 }), b: scriptedPublisher(acked) }
  const resolved = resolveOptions({
    db: { execute: async () => [], transaction: async () => {} },
    publisher: routerPublisher({ publishers, routes: { a: 'a', b: 'b' }, otherwise: 'b' }),
    ...options,
  })
  const lifecycle = new Lifecycle(silentLogger)
  const claims: ClaimRequest[] = []
  const recorded: string[] = []
  const store = {
    claim: async (request: ClaimRequest) => {
      claims.push(request)
      return []
    },
    renew: async () => new Map<string, string>(),
    settlePublished: async (ids: readonly string[]) => new Set(ids),
    settleFailed: async (refs: readonly { id: string; token: string }[]) => {
      recorded.push(...refs.map(({ id }) => id))
      return new Map(refs.map(({ id, token }) => [id, token]))
    },
  }
  const woken: string[] = []
  const drop = () => {}
  const pipelines: Pipelines = new Pipelines({
    store,
    options: resolved,
    settler: new Settler(store, { drop }, lifecycle, resolved, drop),
    lifecycle,
    watchPoll: (round) => round(),
    newLoop: (step) => {
      const note = () => void woken.push(step)
      return { start() {}, wake: note, watch: note, async stop() {} } as unknown as Loop
    },
  })
  pipelines.start()
  return { pipelines, publishers, lifecycle, claims, recorded, woken }
}

it('claims for each publisher what is its own, as much as it likes', async () => {
  const { pipelines, claims } = setUp()
  expect(await pipelines.pollOnce()).toBe(0)
  expect(claims).toMatchObject([
    { exceptTopics: [], onlyTopics: ['a'], limit: 7 },
    { exceptTopics: ['a'], onlyTopics: null, limit: 250 },
  ])
})

it('wakes the fallback of what was left as soon as an event of that aggregate is out, and once', async () => {
  const { pipelines, publishers, lifecycle, woken } = setUp()
  const signal = {
    path: 'fallback',
    latencyMs: null,
    topic: 'a',
    key: '',
    partition: null,
  } as const
  const tell = (aggregateId: string) => {
    const event = outboxEvent({ aggregateId })
    lifecycle.tell('event:published', { ...signal, event, offset: null })
  }
  pipelines.handOver([saved(2, 'b', Number.POSITIVE_INFINITY)], lease)
  await pipelines.drain()
  expect(publishers.b.batches).toEqual([])
  woken.length = 0
  tell('another')
  expect(woken).toEqual([])
  tell('one')
  tell('one')
  expect(woken).toEqual(['poll for b'])
})

it('wakes it for a dead letter too, which nothing waits for', async () => {
  const { pipelines, lifecycle, woken } = setUp()
  pipelines.handOver([saved(2, 'b', 1)], lease)
  await pipelines.drain()
  woken.length = 0
  const event = outboxEvent({ aggregateId: 'one' })
  lifecycle.tell('event:dead', { event, error: new Error('never'), attempts: 1 })
  expect(woken).toEqual(['poll for b'])
})

it('does not remember without end what waits', async () => {
  const { pipelines, lifecycle, woken } = setUp({ maxInFlight: 2 })
  for (const n of [1, 2, 3]) pipelines.handOver([saved(n + 1, 'b', n, `order-${n}`)], lease)
  await pipelines.drain()
  woken.length = 0
  for (const n of [1, 2, 3]) {
    const event = outboxEvent({ aggregateId: `order-${n}` })
    lifecycle.tell('event:dead', { event, error: new Error('never'), attempts: 1 })
  }
  expect(woken).toEqual(['poll for b'])
})

it('wakes only the fallbacks that have something to do', () => {
  const { pipelines, woken } = setUp()
  pipelines.handOver([saved(1, 'a')], null)
  expect(woken).toEqual(['poll for a'])
})

it('wants a unit of work if one publisher takes its part, and sends everything beside each other without order', async () => {
  const { pipelines, publishers } = setUp({ ordering: 'none' })
  const events = [saved(1, 'a'), saved(2, 'b'), saved(3, 'a')]
  expect(pipelines.wants(events)).toBe(true)
  pipelines.handOver(events, lease)
  await pipelines.drain()
  expect(publishers.a.batches).toEqual([[1, 3]])
  expect(publishers.b.batches).toEqual([[2]])
  expect(pipelines.wants(events)).toBe(false)
})
