// What every store has to show to people who look at its events.
import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import type { PageRequest } from '../../../src/store/outbox/browse-store.ts'
import { leased, type TestedStore } from './store-under-test.ts'

const NEWEST: PageRequest = { limit: 10, after: null, order: 'newest' }
const OLDEST: PageRequest = { ...NEWEST, order: 'oldest' }

export function describeBrowse<TTx>({ store, save, claim, bury }: TestedStore<TTx>): void {
  const idsOf = (events: readonly { id: string }[]) => events.map(({ id }) => id)

  it('lists events page by page, each once, in either order', async () => {
    const ids = idsOf(await save(Array.from({ length: 5 }, () => ({}))))
    const all = await store().browse.list({}, OLDEST)
    expect(idsOf(all.events)).toEqual(ids)
    expect(all.next).toBeNull()
    const first = await store().browse.list({}, { ...NEWEST, limit: 3 })
    expect(idsOf(first.events)).toEqual(ids.slice(2).toReversed())
    expect(first.next).toBe(ids[2])
    const second = await store().browse.list({}, { ...NEWEST, limit: 3, after: first.next })
    expect(idsOf(second.events)).toEqual(ids.slice(0, 2).toReversed())
    expect(second.next).toBeNull()
    const { events } = await store().browse.list(
      { status: 'pending' },
      { ...OLDEST, after: ids[3]! },
    )
    expect(idsOf(events)).toEqual([ids[4]])
  })

  it('lists events by status, fields and time', async () => {
    const dead = await bury({ type: 'OrderPaid' })
    const [waiting] = await save([{ aggregateId: 'one', aggregateType: 'cart' }])
    const [sent] = await save([{}])
    await store().recordPublished([sent!.id])
    const list = async (filter: Parameters<ReturnType<typeof store>['browse']['list']>[0]) =>
      idsOf((await store().browse.list(filter, OLDEST)).events)
    expect(await list({})).toEqual([dead.id, waiting!.id, sent!.id])
    expect(await list({ status: 'published' })).toEqual([sent!.id])
    expect(await list({ status: ['dead_letter', 'pending'] })).toEqual([dead.id, waiting!.id])
    expect(await list({ status: 'failed' })).toEqual([])
    expect(await list({ type: 'OrderPaid' })).toEqual([dead.id])
    expect(await list({ topic: 'cart', aggregateType: 'cart', aggregateId: 'one' })).toEqual([
      waiting!.id,
    ])
    const { error } = (await store().browse.list({ id: dead.id }, OLDEST)).events[0]!
    expect(await list({ error: error!, status: 'dead_letter' })).toEqual([dead.id])
    expect(await list({ error: error! })).toEqual([dead.id])
    expect(await list({ error: 'another' })).toEqual([])
    expect(await list({ id: [sent!.id, randomUUID()] })).toEqual([sent!.id])
    const soon = new Date(Date.now() + 3_600_000)
    const before = new Date(Date.now() - 3_600_000)
    expect(await list({ savedSince: before, savedBefore: soon })).toHaveLength(3)
    expect(await list({ savedSince: soon })).toEqual([])
    expect(await list({ savedBefore: before, status: 'dead_letter' })).toEqual([])
  })

  it('shows an event with everything, the process that holds it and what it waits behind', async () => {
    const one = { aggregateId: 'one' }
    const payload = { text: `it's "x" \\ ü` }
    const saved = await save([{ ...one, payload, headers: { a: 'b' } }, one, one])
    const [first, , third] = saved
    const { follows: _follows, leasedAt: _leasedAt, ...prepared } = first!
    await claim(leased(), { limit: 1 })
    const shown = await store().browse.show(first!.id)
    expect(shown).toMatchObject({
      ...prepared,
      status: 'pending',
      attempts: 0,
      isLeased: true,
      workerId: 'test',
      error: null,
      publishedAt: null,
      lastAttemptAt: null,
      behind: [],
    })
    expect(shown!.availableAt.getTime()).toBeGreaterThan(shown!.updatedAt.getTime())
    expect((await store().browse.show(third!.id))!.behind).toEqual(
      saved.slice(0, 2).map(({ id, seq }) => ({ id, seq, status: 'pending' })),
    )
    expect(await store().browse.show(randomUUID())).toBeNull()
  })
}
