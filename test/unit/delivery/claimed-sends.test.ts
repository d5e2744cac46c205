import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { ClaimedSends } from '../../../src/delivery/claimed-sends.ts'
import type { LeasedEvent } from '../../../src/delivery/leased-event.ts'
import { Bell } from '../../../src/runtime/bell.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'
import { type Deferred, defer } from '../../support/timing/deferred.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const leased = (topic: string): LeasedEvent => ({
  event: outboxEvent({ topic }),
  token: 'mine',
  path: 'fallback',
  committedAt: null,
  deadline: 0,
  outcome: null,
})

/** Sends to the topic `slow` end when the test lets them. */
function setUp(orderScope: 'topic' | 'publisher' = 'topic') {
  const batches: string[][] = []
  const held: Deferred<void>[] = []
  const freed = new Bell()
  const rung = vi.fn()
  freed.onRing(rung)
  const sender = {
    async send(batch: readonly LeasedEvent[]) {
      batches.push(batch.map(({ event }) => event.topic))
      if (batch[0]!.event.topic === 'slow') {
        held.push(defer())
        await held.at(-1)!.promise
      }
      return { recorded: Promise.resolve(), over: Promise.resolve() }
    },
  }
  const leases = { drop: () => {} }
  const onOver = () => {}
  const sends = new ClaimedSends({ publisher: { orderScope }, sender, leases, freed, onOver })
  return { sends, batches, held, rung }
}

it('leaves a topic that takes long alone, and claims no more of it while three sends are under way', async () => {
  const { sends, batches, held, rung } = setUp()
  for (const expected of [[], [], ['slow']]) {
    const round = sends.send([leased('slow'), leased('fine')])
    await vi.advanceTimersByTimeAsync(1_000)
    await round
    expect(sends.busyTopics).toEqual(expected)
  }
  expect(batches).toEqual([['slow'], ['fine'], ['slow'], ['fine'], ['slow'], ['fine']])
  held[0]!.resolve()
  await vi.advanceTimersByTimeAsync(0)
  expect(sends.busyTopics).toEqual([])
  expect(rung).toHaveBeenCalledOnce()
})

it('says when the sends of earlier rounds are over', async () => {
  const { sends, held } = setUp()
  const round = sends.send([leased('slow')])
  await vi.advanceTimersByTimeAsync(1_000)
  await round
  const idle = vi.fn()
  void sends.idle().then(idle)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(idle).not.toHaveBeenCalled()
  held[0]!.resolve()
  await vi.advanceTimersByTimeAsync(0)
  expect(idle).toHaveBeenCalledOnce()
})

it('sends everything together where order goes across topics', async () => {
  const { sends, batches } = setUp('publisher')
  await sends.send([leased('fine'), leased('slow')])
  expect(batches).toEqual([['fine', 'slow']])
})
