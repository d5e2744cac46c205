// Order per aggregate: events of one key leave in the order in which they were saved, on both paths.
import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { newClaimer } from '../../support/claimer.ts'
import { defer } from '../../support/timing/deferred.ts'
import { ALL_DRIVERS, SERVED_DRIVERS } from '../../support/drivers.ts'
import { describeEach } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const ODD = 'also "away", {with} \\odd characters'
const event = (payload: number) => newEvent({ aggregateId: 'one', payload })

describeEach(ALL_DRIVERS, (fixture) => {
  it('sends the events of one aggregate one after another, while others overtake', async () => {
    const release = defer()
    const handled: unknown[] = []
    const outbox = fixture.handling({
      OrderCompleted: async ({ payload }) => {
        if (payload === 1) await release.promise
        handled.push(payload)
      },
    })
    await outbox.start()
    for (const n of [1, 2, 3]) await outbox.withOutbox(async (_, emit) => emit(event(n)))
    await outbox.withOutbox(async (_, emit) => emit(newEvent({ payload: 'other' })))
    await waitUntil(() => handled.includes('other'), { message: 'another aggregate went ahead' })
    release.resolve()
    await waitUntil(() => handled.length === 4, { message: 'all were handled' })
    expect(handled).toEqual(['other', 1, 2, 3])
  })

  it('leaves an event to the fallback while an earlier one of its aggregate is not published', async () => {
    const handled: unknown[] = []
    let broken = true
    const outbox = fixture.handling(
      {
        OrderCompleted: ({ payload }) => {
          if (broken) throw new Error('not yet')
          handled.push(payload)
        },
      },
      { backoffBase: 0 },
    )
    await outbox.start()
    const failed = nextEvent(outbox.events, 'event:failed')
    await outbox.withOutbox(async (_, emit) => emit(event(1)))
    await failed
    broken = false
    await outbox.withOutbox(async (_, emit) => emit(event(2)))
    await outbox.stop()
    expect(handled).toEqual([])
    await waitUntil(
      async () => {
        await outbox.pollOnce()
        return handled.length === 2
      },
      { message: 'the fallback delivered both' },
    )
    expect(handled).toEqual([1, 2])
  })

  it('claims, per aggregate, only a run from its oldest unpublished event', async () => {
    const saver = fixture.handling({})
    for (const n of [1, 2, 3]) await saver.withOutbox(async (_, emit) => emit(event(n)))
    await saver.withOutbox(async (_, emit) => emit(newEvent({ aggregateId: 'two' })))
    await fixture.sql`update outbox set available_at = clock_timestamp() + interval '1 hour'
      where seq = (select min(seq) from outbox)`
    const handled: string[] = []
    const outbox = fixture.handling({ OrderCompleted: (e) => void handled.push(e.aggregateId) })
    expect(await outbox.pollOnce()).toBe(1)
    expect(handled).toEqual(['two'])
  })

  it('makes progress when a head became available later than its followers', async () => {
    const saver = fixture.handling({})
    for (let n = 0; n < 10; n += 1) await saver.withOutbox(async (_, emit) => emit(event(n)))
    await fixture.sql`update outbox set available_at = available_at - interval '1 minute'
      where seq > (select min(seq) from outbox)`
    const handled: unknown[] = []
    const outbox = fixture.handling(
      { OrderCompleted: ({ payload }) => void handled.push(payload) },
      { batchSize: 2 },
    )
    while (await outbox.pollOnce());
    expect(handled).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  it('lets events of one aggregate overtake each other with order: none', async () => {
    const release = defer()
    const handled: unknown[] = []
    const outbox = fixture.handling(
      {
        OrderCompleted: async ({ payload }) => {
          if (payload === 1) await release.promise
          handled.push(payload)
        },
      },
      { order: 'none' },
    )
    await outbox.start()
    await outbox.withOutbox(async (_, emit) => emit(event(1)))
    await outbox.withOutbox(async (_, emit) => emit(event(2)))
    await waitUntil(() => handled.length === 1, { message: 'the second overtook the first' })
    release.resolve()
    await outbox.stop()
    expect(handled).toEqual([2, 1])
  })

  it.each([
    ['whose topic is out of reach', { exceptTopics: ['away', ODD] }],
    ['that is for another publisher', { exceptTopics: [], onlyTopics: ['there', ODD] }],
    ['that is neither', { exceptTopics: ['away', ODD], onlyTopics: ['there', 'away'] }],
  ])('is not held up by events that wait behind one %s', async (_case, topics) => {
    const saver = fixture.handling({})
    for (let n = 0; n < 5; n += 1) {
      await saver.withOutbox(async (_, emit) => {
        const aggregateId = `blocked-${n}`
        emit([newEvent({ aggregateId, topic: 'away' }), newEvent({ aggregateId, topic: 'there' })])
      })
    }
    await saver.withOutbox(async (_, emit) => {
      emit(newEvent({ aggregateId: 'free', topic: 'there' }))
    })
    const claimNow = newClaimer(() => fixture.store())
    const lease = { token: randomUUID(), workerId: 'test', ms: 1_000 }
    const claimed = await claimNow({ lease, limit: 2, ...topics })
    expect(claimed.map(({ aggregateId }) => aggregateId)).toEqual(['free'])
  })

  it('lets nothing overtake what was held back behind a dead letter', async () => {
    const handled: unknown[] = []
    const outbox = fixture.handling(
      {
        OrderCompleted: ({ payload }) => void handled.push(payload),
        Bad: () => {
          throw new Error('never')
        },
      },
      { threshold: '1m', maxAttemptsByType: { Bad: 1 } },
    )
    await outbox.start()
    const dead = nextEvent(outbox.events, 'event:dead')
    await outbox.withOutbox(async (_, emit) => {
      emit([newEvent({ aggregateId: 'one', type: 'Bad' }), event(2)])
    })
    await dead
    await outbox.withOutbox(async (_, emit) => emit(event(3)))
    await outbox.stop()
    expect(handled).toEqual([])
    expect(await outbox.pollOnce()).toBe(2)
    expect(handled).toEqual([2, 3])
  })

  it('lets the successors of a dead letter go', async () => {
    const saver = fixture.handling({}, { maxAttemptsByType: { Bad: 1 } })
    await saver.withOutbox(async (_, emit) => {
      emit([newEvent({ aggregateId: 'one', type: 'Bad' }), event(2)])
    })
    const handled: unknown[] = []
    const outbox = fixture.handling({ OrderCompleted: ({ payload }) => void handled.push(payload) })
    while (await outbox.pollOnce());
    expect(handled).toEqual([2])
    expect((await fixture.rows()).map((row) => row.status)).toEqual(['dead_letter', 'published'])
  })

  it('sends an event soon after its predecessor at another instance, without waiting for the next poll', async () => {
    const [started, release] = [defer(), defer()]
    const log: unknown[] = []
    const handle = async ({ payload }: { payload: unknown }) => {
      if (payload === 1) {
        started.resolve()
        await release.promise
      }
      log.push(payload)
    }
    const options = { poller: true, pollInterval: '1h' } as const
    const a = fixture.handling({ OrderCompleted: handle }, options)
    const b = fixture.handling({ OrderCompleted: handle }, options)
    // The poll of start() may wait for a connection. If it came late, the first instance would take the second event.
    const polled = [a, b].map(({ events }) => nextEvent(events, 'poll:done'))
    await Promise.all([a.start(), b.start(), ...polled])
    await a.withOutbox(async (_, emit) => emit(event(1)))
    await started.promise
    await b.withOutbox(async (_, emit) => emit(event(2)))
    await waitUntil(async () => (await fixture.rows())[1]?.leased === false, {
      message: 'the second was given back, as the first is in other hands',
    })
    const published = nextEvent(b.events, 'event:published')
    release.resolve()
    expect(await published).toMatchObject({ path: 'fallback' })
    expect(log).toEqual([1, 2])
  })
})

// These take a second session.
describeEach(SERVED_DRIVERS, (fixture) => {
  const { query } = fixture.driver

  it.each(['read committed', 'repeatable read'] as const)(
    'keeps the order of units that lock their aggregate by themselves, whatever a snapshot hides (%s)',
    async (isolationLevel) => {
      await fixture.sql`create table if not exists orders (id text primary key)`
      await fixture.sql`insert into orders values ('one') on conflict do nothing`
      const handled: unknown[] = []
      const secondHadItsChance = defer()
      const handlers = {
        OrderCompleted: async ({ payload }: { payload: unknown }) => {
          if (payload === 1) await secondHadItsChance.promise
          handled.push(payload)
        },
      }
      const options = { poller: true, pollInterval: '1h' } as const
      const [a, b] = [fixture.handling(handlers, options), fixture.handling(handlers, options)]
      await Promise.all([a.start(), b.start()])
      const lock = "select id from orders where id = 'one' for update"
      // Begun out here: inside the unit of the other outbox it would be refused.
      const [snapshotTaken, firstIsOver] = [defer(), defer()]
      const first = snapshotTaken.promise.then(() =>
        a.withOutbox(async (other, emitOther) => {
          await query(other, lock)
          emitOther(event(1))
        }),
      )
      void first.then(() => firstIsOver.resolve())
      await b.withOutbox(
        async (tx, emit) => {
          // Above read committed the transaction sees no more than what was there by now.
          await query(tx, 'select 1')
          snapshotTaken.resolve()
          await firstIsOver.promise
          await query(tx, lock)
          emit(event(2))
        },
        { isolationLevel },
      )
      // Had the second been sent at once, it would have gone before this one.
      const published = nextEvent(b.events, 'event:published')
      await b.withOutbox(async (_, emit) => emit(newEvent({ payload: 'other' })))
      await published
      secondHadItsChance.resolve()
      await waitUntil(() => handled.length === 3, { message: 'all were handled' })
      expect(handled).toEqual(['other', 1, 2])
    },
  )

  it('does not claim the followers of a row that another claim has locked', async () => {
    const saver = fixture.handling({})
    for (const n of [1, 2, 3]) await saver.withOutbox(async (_, emit) => emit(event(n)))
    const outbox = fixture.handling({ OrderCompleted: () => {} })
    await fixture.sql.begin(async (tx) => {
      await tx`select 1 from outbox where seq = (select min(seq) from outbox) for update`
      expect(await outbox.pollOnce()).toBe(0)
    })
    expect(await outbox.pollOnce()).toBe(3)
  })
})
