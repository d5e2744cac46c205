// What every store has to do beside the path: what is old, what is dead, how much there is, and the table itself.
import { expect, it } from 'vitest'
import type { NewEvent } from '../../../src/index.ts'
import { newClaimer } from '../claimer.ts'
import { describeBrowse } from './store-conformance-browse.ts'
import { failed, leased, LONG, payloadsOf, type TestedStore } from './store-under-test.ts'
import { waitUntil } from '../timing/wait-until.ts'

const PAGE = { limit: 10, afterSeq: 0 }

export function describeUpkeep<TTx>(tested: TestedStore<TTx>): void {
  describeDeadLetters(tested)
  describeFailures(tested)
  describeRetention(tested)
  describeTable(tested)
  describeBrowse(tested)
}

function describeDeadLetters<TTx>(tested: TestedStore<TTx>): void {
  const { store, claim } = tested
  const list = async (filter = {}, page = PAGE) =>
    payloadsOf(await store().listDeadLetters(filter, page))

  it('finds dead letters by everything that is known of them', async () => {
    const first = await tested.bury({ payload: 1, aggregateId: 'one' })
    const second = await tested.bury({ payload: 2, type: 'OrderPaid', aggregateType: 'cart' })
    await tested.save([{ payload: 'alive' }])
    expect(await store().listDeadLetters({}, PAGE)).toMatchObject([
      { id: first.id, error: 'it failed', attempts: 1, seq: first.seq },
      { id: second.id },
    ])
    expect(await list({ id: second.id })).toEqual([2])
    expect(await list({ id: [first.id, second.id], type: 'OrderPaid' })).toEqual([2])
    expect(await list({ aggregateType: 'cart' })).toEqual([2])
    expect(await list({ aggregateId: 'one' })).toEqual([1])
    expect(await list({}, { limit: 1, afterSeq: 0 })).toEqual([1])
    expect(await list({}, { limit: 10, afterSeq: first.seq })).toEqual([2])
    const [{ diedAt } = { diedAt: new Date(NaN) }] = await store().listDeadLetters({}, PAGE)
    expect(await list({ diedSince: diedAt })).toEqual([1, 2])
    expect(await list({ diedBefore: diedAt })).toEqual([])
    expect(await store().countDeadLetters(10)).toEqual({ OrderCompleted: 1, OrderPaid: 1 })
    expect(await store().countDeadLetters(1)).toEqual({ OrderCompleted: 1 })
  })

  it('retries a dead letter as if it were new, in its old place', async () => {
    const dead = await tested.bury({ payload: 1, aggregateId: 'one' })
    await tested.save([{ payload: 2, aggregateId: 'one' }])
    const chosen = { status: 'dead_letter', id: dead.id } as const
    const changed = await store().failures.retry(chosen, PAGE)
    expect(changed).toEqual({ count: 1, lastSeq: null })
    const again = await claim(leased(), { limit: 1 })
    expect(again).toMatchObject([{ id: dead.id, seq: dead.seq, attempts: 0 }])
    expect(await claim()).toEqual([])
    await store().recordPublished([dead.id])
    expect(payloadsOf(await claim())).toEqual([2])
    expect(await list()).toEqual([])
  })

  it('discards dead letters page by page, and nothing else', async () => {
    const dead = [await tested.bury({}), await tested.bury({}), await tested.bury({ type: 'Kept' })]
    await tested.save([{}])
    const discard = (afterSeq: number) =>
      store().failures.discard(
        { status: 'dead_letter', type: 'OrderCompleted' },
        { limit: 1, afterSeq },
      )
    expect(await discard(0)).toEqual({ count: 1, lastSeq: dead[0]!.seq })
    expect(await discard(dead[0]!.seq)).toEqual({ count: 1, lastSeq: dead[1]!.seq })
    expect(await discard(dead[1]!.seq)).toEqual({ count: 0, lastSeq: null })
    expect(await store().countDeadLetters(10)).toEqual({ Kept: 1 })
    expect(await store().countPending(10)).toBe(1)
  })
}

function describeFailures<TTx>(tested: TestedStore<TTx>): void {
  const { store, claim } = tested

  /** Saves one event under a lease and records that it failed, for a reason of its own. */
  const fail = async (event: Partial<NewEvent>, error: string, delayMs = LONG) => {
    const lease = leased()
    const [saved] = await tested.save([event], lease)
    await store().recordFailed([{ ...failed({ ...saved!, ...lease }), delayMs, error }])
    return saved!
  }

  it('groups what failed by what the errors boil down to', async () => {
    await fail({}, 'order 1 is "odd"')
    const second = await fail({}, 'order 22 is "even"')
    await fail({ type: 'OrderPaid' }, 'order 3 is "odd"')
    const dead = await tested.bury({})
    await tested.save([{}])
    const groups = await store().failures.groups(10)
    expect(groups).toHaveLength(3)
    expect(groups[0]).toEqual({
      status: 'failed',
      type: 'OrderCompleted',
      topic: 'order',
      error: 'order <number> is <text>',
      count: 2,
      exact: true,
      firstAt: expect.any(Date),
      lastAt: expect.any(Date),
      example: { id: second.id, error: 'order 22 is "even"' },
    })
    expect(groups).toContainEqual(
      expect.objectContaining({
        status: 'dead_letter',
        error: 'it failed',
        example: { id: dead.id, error: 'it failed' },
      }),
    )
    expect(await store().failures.groups(1)).toHaveLength(1)
  })

  it('counts what failed, page by page, and by id at once', async () => {
    const first = await fail({}, `it's 1`)
    const second = await fail({ type: 'OrderPaid' }, `it's 2`)
    const { failures } = store()
    const filter = { status: 'failed', type: 'OrderPaid', error: `it's <number>` } as const
    const count = (afterSeq: number) => failures.count(filter, { limit: 1, afterSeq })
    expect(await count(0)).toEqual({ count: 0, lastSeq: first.seq })
    expect(await count(first.seq)).toEqual({ count: 1, lastSeq: second.seq })
    expect(await count(second.seq)).toEqual({ count: 0, lastSeq: null })
    const page = { limit: 1, afterSeq: 0 }
    const id = [first.id, second.id]
    expect(await failures.count({ status: 'failed', id }, page)).toEqual({
      count: 2,
      lastSeq: null,
    })
    expect(await failures.count({ status: 'dead_letter', id }, page)).toMatchObject({ count: 0 })
    const savedSince = new Date(Date.now() + 3_600_000)
    expect(await failures.count({ status: 'failed', savedSince }, page)).toMatchObject({ count: 0 })
  })

  it('makes what rests due now, page by page, with its attempts', async () => {
    const first = await fail({ payload: 1 }, `it's 1`)
    const second = await fail({ payload: 2 }, `it's 2`)
    await fail({ payload: 3 }, 'it is 3')
    expect(await claim()).toEqual([])
    const filter = { status: 'failed', error: `it's <number>` } as const
    const retry = (afterSeq: number) => store().failures.retry(filter, { limit: 1, afterSeq })
    expect(await retry(0)).toEqual({ count: 1, lastSeq: first.seq })
    expect(await retry(first.seq)).toEqual({ count: 1, lastSeq: second.seq })
    expect(await retry(second.seq)).toEqual({ count: 0, lastSeq: null })
    expect(await claim()).toMatchObject([
      { id: first.id, attempts: 1 },
      { id: second.id, attempts: 1 },
    ])
  })

  it('discards what rests, lets go what waits behind it, and leaves what is held', async () => {
    const one = { aggregateId: 'one' }
    await fail({ ...one, payload: 1 }, 'it failed')
    await tested.save([
      { ...one, payload: 2 },
      { ...one, payload: 3 },
    ])
    const held = await fail({}, 'it failed', 0)
    expect(await claim()).toMatchObject([{ id: held.id }])
    const discarded = await store().failures.discard({ status: 'failed', topic: 'order' }, PAGE)
    expect(discarded).toEqual({ count: 1, lastSeq: null })
    // Another process, that has put off nothing.
    expect(payloadsOf(await newClaimer(store)({ lease: leased() }))).toEqual([2, 3])
    expect(await store().recordPublished([held.id])).toEqual(new Set([held.id]))
  })
}

function describeRetention<TTx>(tested: TestedStore<TTx>): void {
  const { store } = tested
  const purge = (status: 'published' | 'dead_letter', limit: number, after: string | null = null) =>
    store().purge({ status, olderThanMs: 0, limit, after })
  const countOf = async () => (await store().stats()).published.count

  it('purges what is old enough, no more at once than it is asked to, from where it stopped', async () => {
    const saved = await tested.save([{}, {}, {}])
    const ids = saved.map(({ id }) => id)
    await store().recordPublished(ids)
    await tested.bury({})
    await tested.save([{}])
    const request = { status: 'published', olderThanMs: 3_600_000, limit: 10, after: null } as const
    expect(await store().purge(request)).toEqual({ deleted: 0, last: null })
    const second = await waitUntil(
      async () => {
        const purged = await purge('published', 1, ids[0])
        return purged.deleted > 0 && purged
      },
      { message: 'they are old enough' },
    )
    expect(second).toEqual({ deleted: 1, last: ids[1] })
    expect(await purge('published', 5, second.last)).toEqual({ deleted: 1, last: ids[2] })
    expect(await purge('published', 5, ids[2])).toEqual({ deleted: 0, last: null })
    expect(await purge('published', 5)).toEqual({ deleted: 1, last: ids[0] })
    expect(await store().countDeadLetters(10)).toEqual({ OrderCompleted: 1 })
    expect((await purge('dead_letter', 10)).deleted).toBe(1)
    expect(await store().countPending(10)).toBe(1)
  })

  it('purges each row once, however many purge at the same time', async () => {
    const saved = await tested.save(Array.from({ length: 40 }, () => ({})))
    await store().recordPublished(saved.map(({ id }) => id))
    let total = 0
    await waitUntil(
      async () => {
        const rounds = Array.from({ length: 6 }, () => purge('published', 5))
        for (const { deleted } of await Promise.all(rounds)) total += deleted
        return (await countOf()) === 0
      },
      { message: 'everything is purged' },
    )
    expect(total).toBe(40)
  })
}

function describeTable<TTx>({ store, save, claim }: TestedStore<TTx>): void {
  it('counts what there is, no further than it is told to', async () => {
    expect(await store().stats()).toMatchObject({ pending: { count: 0 }, lagMs: null, latency: {} })
    expect((await store().stats()).topics).toEqual({})
    const saved = await save([{}, {}, { topic: 'payments' }, { type: 'Sent' }])
    // A clock of whole milliseconds, such as PGlite's, may stand still between two statements.
    await waitUntil(async () => (await store().stats()).lagMs! > 0, { message: 'time passes' })
    await store().recordPublished([saved[3]!.id])
    await claim(leased(), { limit: 1 })
    expect([await store().countPending(2), await store().countPending(10)]).toEqual([2, 3])
    const stats = await store().stats()
    expect(stats).toMatchObject({
      pending: { count: 3, exact: true },
      published: { count: 1, exact: true },
      dead: { count: 0, exact: true },
      due: 2,
      retrying: 0,
      latency: { Sent: { events: 1 } },
    })
    expect(stats.lagMs).toBeGreaterThan(0)
    const { topic } = saved[0]!
    expect(Object.keys(stats.topics).toSorted()).toEqual([topic, 'payments'].toSorted())
    expect(stats.topics[topic]!.pending).toEqual({ count: 2, exact: true })
    const lags = Object.values(stats.topics).map(({ lagMs }) => lagMs)
    expect(Math.max(...lags)).toBe(stats.lagMs)
    const { medianMs, p95Ms, maxMs } = stats.latency['Sent']!
    for (const ms of [medianMs, p95Ms, maxMs]) expect(ms).toBeGreaterThan(0)
  })

  it('misses its table until it has been migrated, by however many at once', async () => {
    const elsewhere = store({ table: { schema: 'else where', name: 'events' } })
    await expect(elsewhere.verify()).rejects.toMatchObject({ code: 'TABLE_MISSING' })
    await Promise.all(Array.from({ length: 5 }, () => elsewhere.migrate()))
    await elsewhere.verify()
    await elsewhere.migrate()
    expect(await elsewhere.countPending(1)).toBe(0)
  })
}
