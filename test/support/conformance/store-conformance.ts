// What every store has to do, whatever database is behind it: the promises of the path. Those beside the path are
// in store-conformance-upkeep.ts. Each test says what the steps of the path rely on, through the interface alone.
import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { OutboxEvent } from '../../../src/index.ts'
import { newClaimer } from '../claimer.ts'
import { defer } from '../timing/deferred.ts'
import { waitUntil } from '../timing/wait-until.ts'
import { describeControl } from './store-conformance-control.ts'
import { describeReroute } from './store-conformance-reroute.ts'
import { describeScheduled } from './store-conformance-scheduled.ts'
import { describeUpkeep } from './store-conformance-upkeep.ts'
import {
  died,
  failed,
  givenBack,
  leased,
  LONG,
  payloadsOf,
  prepare,
  refs,
  type StoreSuite,
  type TestedStore,
  useStore,
} from './store-under-test.ts'

const one = (payload: unknown) => ({ aggregateId: 'one', payload })

export function describeStore<TTx>(name: string, suite: StoreSuite<TTx>): void {
  describe(`the store on ${name}`, () => {
    const tested = useStore(suite)
    describeSave(tested)
    if (suite.sessions === 'many') describeSessions(tested)
    describeClaim(tested)
    describeSettle(tested)
    describeUpkeep(tested)
    describeControl(tested)
    describeReroute(tested)
    describeScheduled(tested)
  })
}

function describeSave<TTx>(tested: TestedStore<TTx>): void {
  const { store, transaction, save, claim } = tested

  it('saves with its transaction or not at all', async () => {
    const work = transaction(async (tx) => {
      await store().save(tx, prepare([{}]), leased(0))
      throw new Error('changed its mind')
    })
    await expect(work).rejects.toThrow('changed its mind')
    expect(await store().countPending(10)).toBe(0)
    await save([{}])
    expect(await store().countPending(10)).toBe(1)
  })

  it.each(['together', 'each alone'] as const)(
    'hands events back as they were emitted, when they are saved (%s) and when they are claimed',
    async (how) => {
      const occurredAt = new Date('2020-02-29T12:34:56.789Z')
      const headers = { tenant: 'acmé', 'x"y': '😀\n' }
      const events = prepare([
        { payload: { z: 1e21, a: ['é\u2028', null] }, headers, occurredAt, aggregateId: 'ключ' },
        { payload: null },
        { payload: 9_007_199_254_740_991 },
      ])
      const saved: OutboxEvent[] = []
      for (const part of how === 'together' ? [events] : events.map((event) => [event])) {
        const now = await transaction((tx) => store().save(tx, part, leased(0)))
        saved.push(...now.map(({ event }) => event))
      }
      for (const handed of [saved, await claim()]) {
        expect(handed.map(({ id }) => id)).toEqual(events.map(({ id }) => id))
        expect(handed.map(({ lane }) => lane)).toEqual(events.map(({ lane }) => lane))
        expect(handed.map(({ payload }) => payload)).toEqual(events.map(({ payload }) => payload))
        expect(handed[0]).toMatchObject({ headers, occurredAt, aggregateId: 'ключ', attempts: 0 })
        expect(handed.every(({ maxAttempts }) => maxAttempts === 10)).toBe(true)
        const seqs = handed.map(({ seq }) => seq)
        expect(seqs).toEqual([seqs[0], seqs[0]! + 1, seqs[0]! + 2])
      }
      expect(saved[1]!.occurredAt).toBeInstanceOf(Date)
    },
  )

  it('leaves what is born leased to whoever saved it, and what is born free to anybody', async () => {
    await save([{ payload: 'leased' }], leased())
    await save([{ payload: 'free' }], leased(0))
    expect(payloadsOf(await claim())).toEqual(['free'])
  })

  it('says of each event what it has to follow: all of its lane that is not published, whoever holds it', async () => {
    const [mine, other] = [leased(), leased()]
    const saveOne = async (lease = mine) => (await save([one(0)], lease))[0]!
    const first = await saveOne()
    expect(first.follows).toEqual([])
    const second = await saveOne()
    expect(second.follows).toEqual([first.seq])
    expect((await save([{ aggregateId: 'two' }], mine))[0]!.follows).toEqual([])
    const third = await saveOne(other)
    expect(third.follows).toEqual(expect.arrayContaining([first.seq, second.seq]))
    expect(third.follows).toHaveLength(2)
    await store().recordPublished([first.id, second.id])
    expect((await saveOne()).follows).toEqual([third.seq])
  })

  it('does not count the events of the same unit of work, whose order is known', async () => {
    const [first, second] = await save([one(1), one(2)], leased())
    expect([first!.follows, second!.follows]).toEqual([[], []])
  })

  it('does not list without end what an event has to follow', async () => {
    await save(Array.from({ length: 1_000 }, (_, n) => one(n)))
    expect((await save([one(0)], leased()))[0]!.follows).toHaveLength(1_000)
    expect((await save([one(0)], leased()))[0]!.follows).toBe('unknown')
  })

  it('does not look for what an event has to follow that is born without a lease', async () => {
    expect((await save([one(0)], leased(0)))[0]!.follows).toBe('unknown')
  })

  it.each(['repeatable read', 'serializable'] as const)(
    'cannot tell what an event follows from a snapshot, and says so (%s)',
    async (isolationLevel) => {
      const [saved] = await transaction((tx) => store().save(tx, prepare([{}]), leased()), {
        isolationLevel,
      })
      expect(saved!.follows).toBe('unknown')
    },
  )
}

/** What only matters while somebody else is at work at the same time. */
function describeSessions<TTx>({ store, transaction }: TestedStore<TTx>): void {
  it('with lockKeys, lets transactions that save for one aggregate commit one after another', async () => {
    const locking = store({ lockKeys: true })
    const lease = leased()
    const [saved, commit, begun] = [defer(), defer(), defer()]
    const first = transaction(async (tx) => {
      const [event] = await locking.save(tx, prepare([one(1)]), lease)
      saved.resolve()
      await commit.promise
      return event!
    })
    await saved.promise
    const second = transaction(async (tx) => {
      begun.resolve()
      return (await locking.save(tx, prepare([one(2)]), lease))[0]!
    })
    await begun.promise
    // Another aggregate is not held up, and while it goes through the second has its chance to pass.
    for (let n = 0; n < 20; n += 1) {
      await transaction((tx) => locking.save(tx, prepare([{}]), lease))
    }
    commit.resolve()
    expect((await second).follows).toEqual([(await first).event.seq])
  })
}

function describeClaim<TTx>(tested: TestedStore<TTx>): void {
  const { store, save, claim, claimDue, bury } = tested

  it('claims no more than it is asked to, the oldest first, and each once', async () => {
    await save([1, 2, 3].map((payload) => ({ payload })))
    expect(payloadsOf(await claim(leased(), { limit: 2 }))).toEqual([1, 2])
    expect(payloadsOf(await claim())).toEqual([3])
    expect(await claim()).toEqual([])
  })

  it('claims again what a claim did not settle in time, under a lease of its own', async () => {
    await save([{}])
    const late = leased(1)
    const [event] = await claim(late)
    const lease = leased()
    expect(await claimDue(lease)).toMatchObject([{ id: event!.id, attempts: 0 }])
    expect(await store().renew(refs([event!], late), LONG)).toEqual(new Map())
    expect(await store().renew(refs([event!], lease), LONG)).toEqual(
      new Map([[event!.id, lease.token]]),
    )
  })

  it('claims of each lane only a run from its oldest event', async () => {
    await save([one(1)], leased())
    await save([one(2), { payload: 'other' }])
    expect(payloadsOf(await claim())).toEqual(['other'])
  })

  it('claims and counts by topic, and leaves alone what waits behind a topic that it may not take', async () => {
    const odd = 'a "quoted, \\ {name}'
    await save([
      { ...one(1), topic: 'away' },
      { ...one(2), topic: 'there' },
      { payload: 3, topic: odd },
      { payload: 4, topic: 'there' },
    ])
    expect(await store().countUnrouted(['there', odd], 10)).toEqual({ away: 1 })
    expect(await store().countUnrouted([odd], 1)).toEqual({ away: 1, there: 1 })
    expect(payloadsOf(await claim(leased(), { onlyTopics: [odd, 'else'] }))).toEqual([3])
    expect(payloadsOf(await claim(leased(), { exceptTopics: ['away', odd] }))).toEqual([4])
    expect(await claim(leased(), { exceptTopics: ['away', 'there'] })).toEqual([])
    const [first, ...others] = await claim()
    expect(payloadsOf([first!, ...others])).toEqual([1])
    await store().recordPublished([first!.id])
    expect(payloadsOf(await claim())).toEqual([2])
  })

  it('returns the lane of what it put off, and takes from that when it is free', async () => {
    const [first] = await save([one(1)], leased())
    const [second] = await save([one(2), one(3)])
    const request = { lease: leased(), limit: 10 }
    const due = await store().claim({
      ...request,
      from: { topics: (await store().dueTopics()).topics },
    })
    expect(due).toEqual({ events: [], isFull: false, waitingLanes: [second!.lane] })
    expect((await store().dueTopics()).topics).toEqual([])
    const from = { lanes: due.waitingLanes, onlyTopics: null, exceptTopics: [] }
    expect((await store().claim({ ...request, from })).events).toEqual([])
    await store().recordPublished([first!.id])
    const { events, waitingLanes } = await store().claim({ ...request, limit: 1, from })
    expect(payloadsOf(events)).toEqual([2])
    expect(waitingLanes).toEqual([second!.lane])
  })

  it('does not look at what rests, and returns what waits behind it with the one that rested', async () => {
    const lease = leased()
    const [first] = await save([one(1)], lease)
    await save([one(2)])
    await store().recordFailed([{ ...failed({ id: first!.id, token: lease.token }), delayMs: 500 }])
    const request = { lease: leased(1), limit: 10 }
    const due = await store().claim({ ...request, from: { topics: [first!.topic] } })
    expect(due).toEqual({ events: [], isFull: false, waitingLanes: [] })
    const rested = await waitUntil(
      async () => {
        const claimed = await store().claim({ ...request, from: { topics: [first!.topic] } })
        return claimed.events.length > 0 && claimed
      },
      { message: 'the first one has rested' },
    )
    expect(payloadsOf(rested.events)[0]).toBe(1)
  })

  it('takes one event for a probe, however many have to wait before it, and leaves the others as they are', async () => {
    await save([one(0)], leased())
    await save([
      ...Array.from({ length: 20 }, () => one('waits')),
      ...[1, 2, 3].map((payload) => ({ payload })),
    ])
    const from = { topics: (await store().dueTopics()).topics }
    const probe = { lease: leased(), limit: 1, read: 50, from }
    const { events } = await store().claim(probe)
    expect(payloadsOf(events)).toEqual([1])
    expect(payloadsOf(await claim())).toEqual([2, 3])
  })

  it('takes the oldest event of a lane for a probe, whichever is due first', async () => {
    const lease = leased()
    const saved = await save([one(1), one(2)], lease)
    const [first, second] = refs(saved, lease)
    await store().recordFailed([givenBack(second!)])
    await store().recordFailed([givenBack(first!)])
    const from = { topics: (await store().dueTopics()).topics }
    const { events } = await store().claim({ lease: leased(), limit: 1, read: 50, from })
    expect(payloadsOf(events)).toEqual([1])
  })

  it.each([
    ['a process that holds it', true],
    ['a tool that does not know of that', false],
  ])('wakes what waits behind a dead letter when %s retries that', async (_, knows) => {
    const dead = await bury(one(1))
    await save([one(2), one(3)])
    const holding = store({ deadLettersHold: true })
    const claimHolding = newClaimer(() => holding)
    expect(await claimHolding({ lease: leased() })).toEqual([])
    const chosen = { status: 'dead_letter', id: dead.id } as const
    await store({ deadLettersHold: knows }).failures.retry(chosen, { limit: 1, afterSeq: 0 })
    // Another process, that has put off nothing.
    const claimElsewhere = newClaimer(() => store({ deadLettersHold: true }))
    expect(payloadsOf(await claimElsewhere({ lease: leased() }))).toEqual([1, 2, 3])
  })

  it('never claims an event twice, however many claim at the same time', async () => {
    await save(Array.from({ length: 60 }, (_, n) => ({ payload: n })))
    const rounds = Array.from({ length: 12 }, () => claim(leased(), { limit: 10 }))
    const claimed = (await Promise.all(rounds)).flat()
    // A claim may pass over what another had locked and then, at its limit, left alone.
    const left = await claim()
    const ids = [...claimed, ...left].map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids).toHaveLength(60)
  })

  it('lets the successors of a dead letter go, or holds them', async () => {
    const dead = await bury(one(1))
    await save([one(2)])
    const holding = store({ deadLettersHold: true })
    const claimHolding = newClaimer(() => holding)
    expect(await claimHolding({ lease: leased() })).toEqual([])
    const [held] = await save([one(3)], leased(), { deadLettersHold: true })
    expect(held!.follows).toEqual(expect.arrayContaining([dead.seq]))
    await save([one(4)])
    expect(await claimHolding({ lease: leased() })).toEqual([])
    await holding.failures.discard(
      { status: 'dead_letter', id: dead.id },
      { limit: 1, afterSeq: 0 },
    )
    expect(payloadsOf(await claimHolding({ lease: leased() }))).toEqual([2])
    await bury({ aggregateId: 'two', payload: 5 })
    await save([{ aggregateId: 'two', payload: 6 }])
    expect(payloadsOf(await claim())).toEqual([6])
  })
}

function describeSettle<TTx>(tested: TestedStore<TTx>): void {
  const { store, save, claim, claimDue, bury } = tested

  it('renews under the token that holds a row and under no other', async () => {
    const lease = leased(1)
    const saved = await save([{}, {}], lease)
    expect(await store().renew(refs(saved, leased()), LONG)).toEqual(new Map())
    expect(await store().renew(refs(saved, lease), LONG)).toEqual(
      new Map(saved.map(({ id }) => [id, lease.token])),
    )
    expect(await claim()).toEqual([])
  })

  it('says how events stand, and what is ahead of them', async () => {
    const [mine, brief] = [leased(), leased()]
    const [published] = await save([{}])
    await store().recordPublished([published!.id])
    const dead = await bury({ aggregateId: 'dead' })
    const [held] = await save([{ aggregateId: 'dead' }])
    const [resting] = await save([{ aggregateId: 'resting' }], brief)
    await store().recordFailed([{ ...failed(refs([resting!], brief)[0]!), delayMs: LONG }])
    const [behind] = await save([{ aggregateId: 'resting' }])
    const [sending] = await save([one(0)], mine)
    const [next] = await save([one(1)])
    const free = {
      attempts: 0,
      error: null,
      isLeased: false,
      rests: false,
      isHeld: false,
      ahead: null,
    }
    const failure = { ...free, attempts: 1, error: 'it failed' }
    const ids = [published, dead, held, resting, behind, sending, next].map((event) => event!.id)
    const standings = await store({ deadLettersHold: true }).standing([...ids, randomUUID()])
    expect([...standings.keys()].toSorted()).toEqual(ids.toSorted())
    expect(ids.map((id) => standings.get(id))).toEqual([
      { ...free, status: 'published' },
      { ...failure, status: 'dead_letter' },
      { ...free, status: 'pending', isHeld: true },
      { ...failure, status: 'failed', rests: true },
      { ...free, status: 'pending', ahead: { topic: 'order', isLeased: false, rests: true } },
      { ...free, status: 'pending', isLeased: true },
      { ...free, status: 'pending', ahead: { topic: 'order', isLeased: true, rests: false } },
    ])
    expect((await store().standing([held!.id])).get(held!.id)).toMatchObject({ isHeld: false })
  })

  it('lets an ack win over any lease and over a dead letter, and counts it once', async () => {
    const lease = leased()
    const [held] = await save([{}], lease)
    const dead = await bury({})
    const ids = [held!.id, dead.id]
    expect(await store().recordPublished([...ids, randomUUID()])).toEqual(new Set(ids))
    expect(await store().recordPublished(ids)).toEqual(new Set())
    expect(await store().recordFailed([failed({ id: held!.id, token: lease.token })])).toEqual(
      new Map(),
    )
    expect(await store().renew(refs([held!], lease), LONG)).toEqual(new Map())
    expect(await claim()).toEqual([])
    expect(await store().stats()).toMatchObject({ published: { count: 2 }, dead: { count: 0 } })
  })

  it('keeps what was published, or deletes it', async () => {
    const [kept, deleted] = await save([{}, {}])
    await store().recordPublished([kept!.id])
    expect(await store({ keepPublished: false }).recordPublished([deleted!.id])).toEqual(
      new Set([deleted!.id]),
    )
    expect(await store().stats()).toMatchObject({ published: { count: 1 }, pending: { count: 0 } })
  })

  it('records a failure under the lease that it happened under, and once', async () => {
    const lease = leased()
    const saved = await save([{}, {}], lease)
    const [mine, stranger] = refs(saved, lease)
    const records = [failed(mine!), failed({ ...stranger!, token: randomUUID() })]
    expect(await store().recordFailed(records)).toEqual(new Map([[mine!.id, lease.token]]))
    expect(await store().recordFailed(records)).toEqual(new Map())
    expect(await claim()).toMatchObject([{ id: mine!.id, attempts: 1 }])
  })

  it('lets what failed rest, and counts an attempt only if there was one', async () => {
    const lease = leased()
    const saved = await save(
      [{ payload: 'rests' }, { payload: 'soon' }, { payload: 'back' }],
      lease,
    )
    const [rests, soon, back] = refs(saved, lease)
    await store().recordFailed([
      { ...failed(rests!), delayMs: LONG },
      { ...failed(soon!), delayMs: 1 },
      givenBack(back!),
    ])
    const due = [...(await claimDue()), ...(await claim())]
    expect(due.find(({ id }) => id === back!.id)?.attempts).toBe(0)
    expect(payloadsOf(due)).not.toContain('rests')
    expect(await store().stats()).toMatchObject({ retrying: 2, mostAttempts: 1 })
  })

  it('says of a repeated failure whether the first statement recorded it', async () => {
    const lease = leased()
    const saved = await save([one('recorded'), one('fenced'), one('held')], lease)
    const [recorded, fenced, held] = refs(saved, lease)
    await store().recordFailed([died(recorded!), failed(fenced!)])
    const [taken] = await claim()
    expect(taken!.id).toBe(fenced!.id)
    const repeated = [died(recorded!), failed(fenced!), failed(held!)].map((failure) => {
      return { ...failure, isRepeated: true }
    })
    const again = await store().recordFailed(repeated)
    expect([...again.keys()].toSorted()).toEqual([recorded!.id, held!.id].toSorted())
    expect((await store().listDeadLetters({}, { limit: 9, afterSeq: 0 })).length).toBe(1)
  })

  it('gives the copies of dead letters the order of their events', async () => {
    const lease = leased()
    const saved = await save(
      Array.from({ length: 20 }, (_, n) => one(n)),
      lease,
    )
    const copies = refs(saved, lease).map((ref) => {
      return { ...died(ref), copyId: randomUUID(), copyLane: 7 }
    })
    // In whatever order they are recorded.
    await store({ deadLetterTopic: 'graveyard' }).recordFailed(copies.toReversed())
    expect((await claim()).map(({ payload }) => payload)).toEqual(
      saved.map(({ payload }) => payload),
    )
  })

  it('sends a copy of a dead letter to the dead-letter topic, as an event of its own', async () => {
    const lease = leased()
    const rules = { deadLetterTopic: 'graveyard' }
    const [saved] = await save(
      [{ ...one('text'), headers: { tenant: 'a' }, topic: 'orders' }],
      lease,
    )
    const copyId = randomUUID()
    const [ref] = refs([saved!], lease)
    await store(rules).recordFailed([{ ...died(ref!), copyId, copyLane: 7 }])
    const [copy, ...others] = await claim()
    expect(others).toEqual([])
    expect(copy).toMatchObject({
      id: copyId,
      lane: 7,
      type: 'DeadLettered',
      topic: 'graveyard',
      aggregateId: 'one',
      payload: '"text"',
      headers: {
        tenant: 'a',
        'dead-letter-id': saved!.id,
        'dead-letter-type': saved!.type,
        'dead-letter-aggregate-type': saved!.aggregateType,
        'dead-letter-topic': 'orders',
        'dead-letter-error': 'it failed',
      },
    })
  })
}
