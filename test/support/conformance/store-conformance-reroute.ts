// What every store has to do when events are moved from one topic to another: it moves what no process holds, page by page, and
// keeps its order.
import { describe, expect, it } from 'vitest'
import type { NewEvent } from '../../../src/index.ts'
import type { ReroutePlace } from '../../../src/store/outbox/reroute.ts'
import { waitUntil } from '../timing/wait-until.ts'
import { failed, leased, payloadsOf, refs, type TestedStore } from './store-under-test.ts'

const TOPICS = { from: 'odrers', to: 'orders' }
const PAGE = { limit: 100, after: null }

const mistyped = (payload: unknown, event: Partial<NewEvent> = {}) => ({
  topic: TOPICS.from,
  payload,
  ...event,
})

export function describeReroute<TTx>(tested: TestedStore<TTx>): void {
  const { store, save, claim, claimDue, bury } = tested
  const topicsOf = async () => {
    const page = { limit: 100, after: null, order: 'oldest' } as const
    const { events } = await store().browse.list({}, page)
    return events.map(({ topic }) => topic)
  }

  describe('rerouting', () => {
    it('moves what waits for a topic, and nothing of another one', async () => {
      await save([mistyped(1), mistyped(2), { topic: 'carts' }])
      expect(await store().reroute(TOPICS, PAGE)).toEqual({ moved: 2, held: 0, last: null })
      expect(await topicsOf()).toEqual(['orders', 'orders', 'carts'])
      const claimed = await claim(leased(), { onlyTopics: [TOPICS.to] })
      expect(payloadsOf(claimed)).toEqual([1, 2])
      expect(claimed.map(({ topic }) => topic)).toEqual([TOPICS.to, TOPICS.to])
      expect(await store().reroute(TOPICS, PAGE)).toEqual({ moved: 0, held: 0, last: null })
    })

    it('leaves what is published, dead, or scheduled for later', async () => {
      const [published] = await save([
        mistyped('published'),
        mistyped('later', { deliverAfter: '1h' }),
      ])
      await store().recordPublished([published!.id])
      await bury(mistyped('dead'))
      expect(await store().reroute(TOPICS, PAGE)).toEqual({ moved: 0, held: 0, last: null })
      expect(new Set(await topicsOf())).toEqual(new Set([TOPICS.from]))
    })

    it('leaves what a process holds, counts it, and takes it once its lease is over', async () => {
      await save([mistyped('held')], leased())
      const lease = leased(1)
      const [late] = await save([mistyped('late')], lease)
      const first = await waitUntil(
        async () => {
          const page = await store().reroute(TOPICS, PAGE)
          return page.moved > 0 && page
        },
        { message: 'the lease is over' },
      )
      expect(first).toEqual({ moved: 1, held: 1, last: null })
      expect(await store().renew(refs([late!], lease), 1_000)).toEqual(new Map())
      expect(payloadsOf(await claim())).toEqual(['late'])
    })

    it('takes what the process that saved it was about to lease, after a transaction of the application', async () => {
      const events = await save([mistyped('just committed')])
      expect(await store().reroute(TOPICS, PAGE)).toMatchObject({ moved: 1, held: 0 })
      expect(await store().lease(events, leased())).toEqual([])
      expect(await claimDue()).toMatchObject([{ id: events[0]!.id, topic: TOPICS.to }])
    })

    it('makes what rests due now, with the attempts that it has had', async () => {
      await save([mistyped('resting')])
      const lease = leased()
      const [event] = await claim(lease)
      const ref = { id: event!.id, token: lease.token }
      await store().recordFailed([{ ...failed(ref), delayMs: 3_600_000 }])
      expect(await claim()).toEqual([])
      expect(await store().reroute(TOPICS, PAGE)).toMatchObject({ moved: 1 })
      expect(await claimDue()).toMatchObject([{ id: event!.id, topic: TOPICS.to, attempts: 1 }])
    })

    it('goes on where the last page ended, past what is held and what has moved', async () => {
      await save([mistyped(1), mistyped(2)])
      await save([mistyped('held')], leased(1_000_000))
      await save([mistyped(3)])
      const pages: { moved: number; held: number }[] = []
      let after: ReroutePlace | null = null
      do {
        const { last, ...page } = await store().reroute(TOPICS, { limit: 2, after })
        pages.push(page)
        after = last
      } while (after !== null)
      expect(pages).toEqual([
        { moved: 2, held: 0 },
        { moved: 1, held: 1 },
        { moved: 0, held: 0 },
      ])
      expect((await topicsOf()).filter((topic) => topic === TOPICS.to)).toHaveLength(3)
    })

    it('keeps the order of an aggregate, also behind one that stays', async () => {
      const one = (payload: unknown) => mistyped(payload, { aggregateId: 'one' })
      const [first] = await save([one(1)], leased())
      await save([one(2), one(3)])
      expect(await store().reroute(TOPICS, PAGE)).toEqual({ moved: 2, held: 1, last: null })
      expect(await claim()).toEqual([])
      await store().recordPublished([first!.id])
      expect(payloadsOf(await claimDue())).toEqual([2, 3])
    })
  })
}
