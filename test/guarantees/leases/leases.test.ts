// Rules 2, 4, 5 and 7: who may send a row, and when. The second outbox plays the other process: its
// poller would take whatever is free, and tells how much that was.
import { expect, it } from 'vitest'
import type { AnyDatabase } from '../../../src/index.ts'
import { blockedHandler } from '../../support/timing/blocked-handler.ts'
import { defer } from '../../support/timing/deferred.ts'
import { ALL_DRIVERS, SERVED_DRIVERS } from '../../support/drivers.ts'
import { describeEach, type Fixture, WATCHABLE } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const whenBirthLeaseIsOver = (fixture: Fixture<AnyDatabase>) =>
  waitUntil(async () => (await fixture.rows()).every((row) => row.born_lease_over), {
    message: 'the lease of birth would be over',
  })

describeEach(ALL_DRIVERS, (fixture) => {
  const { query } = fixture.driver
  const birthLeaseIsOver = () => whenBirthLeaseIsOver(fixture)

  it('publishes once when the transaction lasted longer than the threshold (born leased)', async () => {
    const { handler, started, release, handled } = blockedHandler()
    const outbox = fixture.handling({ OrderCompleted: handler }, WATCHABLE)
    const other = fixture.handling({ OrderCompleted: handler }, WATCHABLE)
    await outbox.start()
    await outbox.withOutbox(async (tx, emit) => {
      emit(newEvent())
      // Longer than the threshold. Its age is counted from the save, which comes after this.
      await query(tx, 'select pg_sleep(2.5)::text')
    })
    await started
    expect(await other.pollOnce()).toBe(0)
    const published = nextEvent(outbox.events, 'event:published')
    release()
    expect(await published).toMatchObject({ path: 'immediate' })
    expect(handled).toHaveLength(1)
  })

  it('publishes once when the send is slower than the threshold (a send under way keeps its lease)', async () => {
    const { handler, started, release, handled } = blockedHandler()
    const outbox = fixture.handling({ OrderCompleted: handler }, WATCHABLE)
    const other = fixture.handling({ OrderCompleted: handler }, WATCHABLE)
    await outbox.start()
    await outbox.withOutbox(async (_, emit) => emit(newEvent()))
    await started
    await birthLeaseIsOver()
    expect(await other.pollOnce()).toBe(0)
    const published = nextEvent(outbox.events, 'event:published')
    release()
    expect(await published).toMatchObject({ path: 'immediate' })
    expect(handled).toHaveLength(1)
  })

  it('renews what waits in a queue as well as what is being sent', async () => {
    const { handler, started, release, handled } = blockedHandler()
    const outbox = fixture.handling({ OrderCompleted: handler }, WATCHABLE)
    const other = fixture.handling({ OrderCompleted: handler }, { ...WATCHABLE, order: 'none' })
    await outbox.start()
    await outbox.withOutbox(async (_, emit) => emit(newEvent({ aggregateId: 'one' })))
    await started
    await outbox.withOutbox(async (_, emit) => emit(newEvent({ aggregateId: 'one' })))
    await birthLeaseIsOver()
    expect(await other.pollOnce()).toBe(0)
    release()
    await waitUntil(() => handled.length === 2, { message: 'both were handled' })
  })

  it('gives rows without a lease to the fallback at once when nobody would send them', async () => {
    const saver = fixture.handling({})
    await saver.withOutbox(async (_, emit) => emit(newEvent()))
    expect(await fixture.rows()).toMatchObject([{ status: 'pending', available: true }])
  })

  it('publishes once when a send of the fallback is slower than the threshold', async () => {
    const { handler, started, release, handled } = blockedHandler()
    const saver = fixture.handling({})
    await saver.withOutbox(async (_, emit) => emit(newEvent()))
    const outbox = fixture.handling({ OrderCompleted: handler }, { ...WATCHABLE, poller: true })
    const other = fixture.handling({ OrderCompleted: handler }, WATCHABLE)
    await outbox.start()
    await started
    const [claimed] = await fixture.sql`select updated_at::text as at from outbox`
    await waitUntil(
      async () => {
        const [over] = await fixture.sql`select ${claimed!['at']}::text::timestamptz
          + interval '2 s' <= clock_timestamp() as over`
        return over?.['over']
      },
      { message: 'the lease of the claim would be over' },
    )
    expect(await other.pollOnce()).toBe(0)
    const published = nextEvent(outbox.events, 'event:published')
    release()
    expect(await published).toMatchObject({ path: 'fallback' })
    expect(handled).toHaveLength(1)
  })
})

// These take a second session.
describeEach(SERVED_DRIVERS, (fixture) => {
  const birthLeaseIsOver = () => whenBirthLeaseIsOver(fixture)

  it('does not send on a stale lease', async () => {
    const { handler, started, release, handled } = blockedHandler()
    const outbox = fixture.handling({ OrderCompleted: handler }, WATCHABLE)
    await outbox.start()
    await outbox.withOutbox(async (_, emit) => emit(newEvent({ aggregateId: 'one' })))
    await started
    await outbox.withOutbox(async (_, emit) => emit(newEvent({ aggregateId: 'one' })))

    // The second waits behind the first. A lock on its row keeps its lease from being renewed.
    const [locked, unlock] = [defer(), defer()]
    const locker = fixture.sql.begin(async (tx) => {
      await tx`select 1 from outbox where seq = (select max(seq) from outbox) for update`
      locked.resolve()
      await unlock.promise
    })
    try {
      await locked.promise
      await birthLeaseIsOver()
      const published = nextEvent(outbox.events, 'event:published')
      release()
      await published
      expect(handled).toHaveLength(1)
    } finally {
      unlock.resolve()
      await locker
    }

    const other = fixture.handling({ OrderCompleted: handler }, WATCHABLE)
    await waitUntil(() => other.pollOnce(), { message: 'the fallback takes the second' })
    expect(handled).toHaveLength(2)
    expect((await fixture.rows()).map((row) => row.status)).toEqual(['published', 'published'])
  })

  it('holds no transaction and no row lock while it sends (claims are short)', async () => {
    const { handler, started, release } = blockedHandler()
    const saver = fixture.handling({})
    await saver.withOutbox(async (_, emit) => emit(newEvent()))
    const outbox = fixture.handling({ OrderCompleted: handler }, WATCHABLE)
    const polled = outbox.pollOnce()
    const id = await started
    expect(await fixture.sql`select 1 from outbox where id = ${id} for update nowait`).toHaveLength(
      1,
    )
    const [open] = await fixture.sql`
      select count(*)::int from pg_stat_activity
      where datname = current_database() and state like 'idle in transaction%'`
    expect(open?.['count']).toBe(0)
    release()
    expect(await polled).toBe(1)
  })

  it('does not send on a lease that aged while it was being saved', async () => {
    const handled: string[] = []
    const handlers = { OrderCompleted: ({ id }: { id: string }) => void handled.push(id) }
    const outbox = fixture.handling(handlers, WATCHABLE)
    await outbox.start()
    const [locked, saving] = [defer(), defer()]
    // The save waits for a lock on the table for more than half of the lease.
    const locker = fixture.sql.begin(async (tx) => {
      await tx`lock table outbox in share mode`
      locked.resolve()
      await saving.promise
      await tx`select pg_sleep(1.2)::text`
    })
    await locked.promise
    const saved = outbox.withOutbox(async (_, emit) => emit(newEvent()))
    await waitUntil(
      async () => {
        const [waiting] = await fixture.sql`select 1 from pg_locks where not granted
          and relation = 'outbox'::regclass`
        return waiting !== undefined
      },
      { message: 'the save waits for the lock' },
    )
    saving.resolve()
    await locker
    await saved
    await outbox.stop()
    expect(handled).toEqual([])
    const other = fixture.handling({ OrderCompleted: ({ id }) => void handled.push(id) })
    await waitUntil(() => other.pollOnce(), { message: 'the fallback takes it' })
    expect(handled).toHaveLength(1)
  })
})
