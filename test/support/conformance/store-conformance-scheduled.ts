// What every store has to do with scheduled events: keep them apart until they are due, and let exactly one of a claim and a
// cancellation have each.
import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { waitUntil } from '../timing/wait-until.ts'
import {
  died,
  failed,
  givenBack,
  leased,
  LONG,
  payloadsOf,
  prepare,
  refs,
  type TestedStore,
} from './store-under-test.ts'

const HOUR = 3_600_000
const PAST = new Date('2020-01-01T00:00:00Z')

export function describeScheduled<TTx>({
  store,
  transaction,
  save,
  claim,
  claimDue,
}: TestedStore<TTx>): void {
  describe('what is scheduled', () => {
    it('is neither claimed nor counted before it is due, and says when that is', async () => {
      await save([{ deliverAfter: '2h' }, { deliverAfter: '1h' }, { payload: 'now' }])
      expect(await store().countPending(10)).toBe(1)
      const { nextInMs } = await store().dueTopics()
      expect(nextInMs).toBeGreaterThan(HOUR - 60_000)
      expect(nextInMs).toBeLessThanOrEqual(HOUR)
      expect(payloadsOf(await claim())).toEqual(['now'])
      const stats = await store().stats()
      expect(stats.scheduled).toEqual({ count: 2, exact: true })
      expect(stats.pending).toEqual({ count: 1, exact: true })
    })

    it('is due at the time that it was given, and counts from then on', async () => {
      await save([
        { deliverAt: PAST, payload: 'past' },
        { deliverAfter: 300, payload: 'soon' },
      ])
      expect(await store().countPending(10)).toBeGreaterThanOrEqual(1)
      const { due, lagMs } = await store().stats()
      expect(due).toBeGreaterThanOrEqual(1)
      // It was due when it was saved, not in 2020.
      expect(lagMs).toBeLessThan(60_000)
      const claimed = payloadsOf(await claim())
      // On a machine that stands still, both are due by then.
      if (claimed.length === 1) claimed.push(...payloadsOf(await claimDue()))
      expect(claimed).toEqual(['past', 'soon'])
      expect(await store().dueTopics()).toEqual({ topics: [], nextInMs: null })
    })

    it('is saved without a lease, beside events that have one, and follows nothing', async () => {
      const lease = leased()
      const events = prepare([
        { aggregateId: 'one', payload: 'leased' },
        { aggregateId: 'one', deliverAt: PAST },
      ])
      const saved = await transaction((tx) => store().save(tx, events, lease))
      expect(saved.map(({ dueInMs }) => dueInMs === undefined)).toEqual([true, false])
      expect(saved[1]!.dueInMs).toBeLessThanOrEqual(0)
      expect(saved.map(({ follows }) => follows)).toEqual([[], []])
      const later = await save([{ aggregateId: 'one' }], leased())
      expect(later[0]!.follows).toEqual([saved[0]!.event.seq])
      await store().dueTopics()
      expect(await store().renew(refs(events, lease), LONG)).toEqual(
        new Map([[events[0]!.id, lease.token]]),
      )
      expect((await claim()).map(({ id }) => id)).toEqual([events[1]!.id])
    })

    it('is retried and dies like any other event once it is due', async () => {
      await save([{ deliverAt: PAST }])
      const lease = leased()
      const [first] = await claim(lease)
      await store().recordFailed([failed({ id: first!.id, token: lease.token })])
      const again = leased()
      const [second] = await claimDue(again)
      expect(second).toMatchObject({ id: first!.id, attempts: 1 })
      await store().recordFailed([died({ id: first!.id, token: again.token })])
      expect(await store().countDeadLetters(10)).toEqual({ OrderCompleted: 1 })
    })

    it('can be listed, with the time at which it is due', async () => {
      const [later, now] = await save([{ deliverAfter: '1h' }, {}])
      const page = { limit: 10, after: null, order: 'oldest' } as const
      const list = async (status: 'scheduled' | 'pending') =>
        (await store().browse.list({ status }, page)).events
      expect(await list('scheduled')).toMatchObject([{ id: later!.id, status: 'scheduled' }])
      expect(await list('pending')).toMatchObject([{ id: now!.id, deliverAt: null }])
      const shown = await store().browse.show(later!.id)
      const dueIn = shown!.deliverAt!.getTime() - shown!.createdAt.getTime()
      expect(Math.abs(dueIn - HOUR)).toBeLessThan(60_000)
      expect(shown!.availableAt).toEqual(shown!.deliverAt)
    })

    it('can be cancelled once, before it is due and after, until a claim takes it', async () => {
      const [later, due, taken] = await save([
        { deliverAfter: '1h' },
        { deliverAt: PAST },
        { deliverAt: PAST },
      ])
      expect(await store().cancel(later!.id)).toBe(true)
      expect(await store().cancel(later!.id)).toBe(false)
      await store().dueTopics()
      expect(await store().cancel(due!.id)).toBe(true)
      const lease = leased()
      expect((await claim(lease)).map(({ id }) => id)).toEqual([taken!.id])
      expect(await store().cancel(taken!.id)).toBe(false)
      // It may have been sent before it was given back.
      await store().recordFailed([givenBack({ id: taken!.id, token: lease.token })])
      expect(await store().cancel(taken!.id)).toBe(false)
      expect(await store().cancel(randomUUID())).toBe(false)
    })

    it('is the only thing that can be cancelled', async () => {
      const [free, held] = [(await save([{}]))[0]!, (await save([{}], leased()))[0]!]
      expect(await store().cancel(free.id)).toBe(false)
      expect(await store().cancel(held.id)).toBe(false)
    })

    it('is cancelled with its transaction or not at all', async () => {
      const [event] = await save([{ deliverAfter: '1h' }])
      for (const cancel of [
        (tx: TTx) => store().cancel(event!.id, tx),
        (tx: TTx) => store().cancelIn(tx, event!.id),
      ]) {
        const work = transaction(async (tx) => {
          expect(await cancel(tx)).toBe(true)
          expect(await cancel(tx)).toBe(false)
          throw new Error('changed its mind')
        })
        await expect(work).rejects.toThrow('changed its mind')
      }
      expect(await transaction((tx) => store().cancelIn(tx, event!.id))).toBe(true)
      expect((await store().stats()).scheduled.count).toBe(0)
    })

    it('becomes due in any number', async () => {
      const events = Array.from({ length: 1_200 }, (_, n) => ({ deliverAt: PAST, payload: n }))
      await save(events)
      const claimed: unknown[] = []
      await waitUntil(
        async () => {
          claimed.push(...payloadsOf(await claim(leased(), { limit: 500 })))
          return claimed.length >= events.length
        },
        { message: 'all are claimed' },
      )
      expect(new Set(claimed).size).toBe(events.length)
    })
  })
}
