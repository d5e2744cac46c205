// A cancelled event never goes out, also when it is cancelled as it becomes due, and one that could not be cancelled does. The
// cancellation commits or rolls back with the transaction around it.
import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import type { AnyDatabase, NewEvent, Outbox } from '../../../src/index.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { ALL_DRIVERS } from '../../support/drivers.ts'
import { describeEach, type Fixture, useFixture } from '../../support/fixture.ts'
import { defer } from '../../support/timing/deferred.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const PAST = new Date('2020-01-01T00:00:00Z')
const failure = new Error('the business said no')

function recording(
  fixture: Pick<Fixture<AnyDatabase>, 'outbox'>,
  options: Parameters<Fixture<AnyDatabase>['handling']>[1] = {},
): { outbox: Outbox; sent: string[] } {
  const sent: string[] = []
  const publisher = scriptedPublisher((event) => {
    sent.push(event.id)
    return acked(event)
  })
  return { outbox: fixture.outbox({ publisher, ...options }), sent }
}

const schedule = (outbox: Outbox, event: Partial<NewEvent> = { deliverAt: PAST }) =>
  outbox.withOutbox(async (_, emit) => emit(newEvent(event)))

describeEach(ALL_DRIVERS, (fixture) => {
  const { nest, begin } = fixture.driver

  it('never goes out once it is cancelled, and is cancelled once', async () => {
    const { outbox, sent } = recording(fixture)
    const id = await schedule(outbox)
    expect(await outbox.scheduled.cancel(id)).toBe(true)
    expect(await outbox.scheduled.cancel(id)).toBe(false)
    expect(await outbox.pollOnce()).toBe(0)
    expect(sent).toEqual([])
    expect(await fixture.rows()).toEqual([])
  })

  it('is cancelled with the unit of work around it, at any depth, or not at all', async () => {
    const { outbox, sent } = recording(fixture)
    const [kept, undone, gone] = [
      await schedule(outbox),
      await schedule(outbox),
      await schedule(outbox),
    ]
    const helper = (id: string) => outbox.scheduled.cancel(id)
    const work = outbox.withOutbox(async () => {
      expect(await helper(kept)).toBe(true)
      throw failure
    })
    await expect(work).rejects.toBe(failure)
    await outbox.withOutbox(async (tx) => {
      const nested = nest(tx, async (inner) => {
        expect(await outbox.scheduled.cancelIn(inner, undone)).toBe(true)
        throw failure
      })
      await expect(nested).rejects.toBe(failure)
      expect(await outbox.scheduled.cancelIn(tx as never, gone)).toBe(true)
      expect(await helper(gone)).toBe(false)
    })
    expect(await outbox.pollOnce()).toBe(2)
    expect(sent.toSorted()).toEqual([kept, undone].toSorted())
  })

  it('is cancelled in the unit of work that emitted it, as far as that is kept', async () => {
    const { outbox, sent } = recording(fixture)
    const kept = await outbox.withOutbox(async (tx, emit) => {
      const ids = [
        emit(newEvent({ deliverAt: PAST })),
        emit(newEvent({ deliverAt: PAST })),
        emit(newEvent()),
      ]
      expect(await outbox.scheduled.cancel(ids[0]!.toUpperCase())).toBe(true)
      expect(await outbox.scheduled.cancel(ids[0]!)).toBe(false)
      const nested = nest(tx, async () => {
        expect(await outbox.scheduled.cancel(ids[1]!)).toBe(true)
        throw failure
      })
      await expect(nested).rejects.toBe(failure)
      // It is not scheduled.
      expect(await outbox.scheduled.cancel(ids[2]!)).toBe(false)
      return ids.slice(1)
    })
    expect(await outbox.pollOnce()).toBe(2)
    expect(sent.toSorted()).toEqual(kept.toSorted())
  })

  it('refuses to cancel in a nested transaction, or a unit of work, that has ended', async () => {
    const { outbox } = recording(fixture)
    const id = await schedule(outbox)
    let ended: unknown
    await outbox.withOutbox(async (tx, emit) => {
      let nested: unknown
      await nest(tx, async (inner) => {
        nested = inner
      })
      for (const one of [id, emit(newEvent({ deliverAt: PAST }))]) {
        await expect(outbox.scheduled.cancelIn(nested as never, one)).rejects.toMatchObject({
          code: 'UNIT_OF_WORK_OVER',
          message: expect.stringContaining('cancel() was called after its nested transaction'),
        })
      }
      ended = tx
    })
    await expect(outbox.scheduled.cancelIn(ended as never, id)).rejects.toMatchObject({
      code: 'UNIT_OF_WORK_OVER',
    })
    expect(await fixture.rows()).toHaveLength(2)
  })

  it('is cancelled in a transaction of your own, if that is open', async () => {
    const { outbox, sent } = recording(fixture)
    const [kept, gone] = [await schedule(outbox), await schedule(outbox)]
    const { scheduled } = outbox
    const rolledBack = begin(fixture.db, async (tx) => {
      expect(await scheduled.cancelIn(tx, kept)).toBe(true)
      throw failure
    })
    await expect(rolledBack).rejects.toBe(failure)
    expect(await begin(fixture.db, async (tx) => await scheduled.cancelIn(tx, gone))).toBe(true)
    const notOpen = scheduled.cancelIn(fixture.db as never, kept)
    await expect(notOpen).rejects.toMatchObject({ code: 'OPTIONS_INVALID' })
    expect(await outbox.pollOnce()).toBe(1)
    expect(sent).toEqual([kept])
  })
})

const fixture = useFixture()

it('refuses what would commit separately from the transaction around it', async () => {
  const { outbox } = recording(fixture)
  const id = await schedule(outbox)
  const inOwn = fixture.db.transaction(async () => await outbox.scheduled.cancel(id))
  await expect(inOwn).rejects.toMatchObject({
    code: 'NESTED',
    message: expect.stringContaining('scheduled.cancelIn(tx, id)'),
  })
  const { outbox: other } = recording(fixture)
  const inOther = other.withOutbox(async () => await outbox.scheduled.cancel(id))
  await expect(inOther).rejects.toMatchObject({ code: 'NESTED' })
  expect(await fixture.rows()).toHaveLength(1)
})

it('refuses a client that has no transaction, and an id that is none', async () => {
  const { outbox } = recording(fixture)
  const id = await schedule(outbox)
  const session = await fixture.sql.reserve()
  await expect(outbox.scheduled.cancelIn(session, id)).rejects.toMatchObject({
    code: 'OPTIONS_INVALID',
  })
  session.release()
  for (const none of ['1', '', undefined, null, [id]]) {
    await expect(outbox.scheduled.cancel(none as never)).rejects.toMatchObject({
      code: 'OPTIONS_INVALID',
    })
  }
  expect(await outbox.scheduled.cancel(randomUUID())).toBe(false)
  expect(await fixture.rows()).toHaveLength(1)
})

it('can be cancelled while its topic is paused, although it is due', async () => {
  const { outbox, sent } = recording(fixture)
  await outbox.pause('order')
  const id = await schedule(outbox)
  expect(await outbox.pollOnce()).toBe(0)
  expect(await outbox.scheduled.cancel(id)).toBe(true)
  await outbox.resume('order')
  expect(await outbox.pollOnce()).toBe(0)
  expect(sent).toEqual([])
})

it('cannot be cancelled while it is being sent, nor afterwards', async () => {
  const [begun, answer] = [defer(), defer()]
  const publisher = scriptedPublisher(async (event) => {
    begun.resolve()
    await answer.promise
    return acked(event)
  })
  const outbox = fixture.outbox({ publisher }) as Outbox
  const id = await schedule(outbox)
  const polled = outbox.pollOnce()
  await begun.promise
  expect(await outbox.scheduled.cancel(id)).toBe(false)
  answer.resolve()
  expect(await polled).toBe(1)
  expect(await outbox.scheduled.cancel(id)).toBe(false)
})

it('does not go out while the transaction that cancels it is open, and holds up no other', async () => {
  const { outbox, sent } = recording(fixture)
  const [locked, free] = [await schedule(outbox), await schedule(outbox)]
  const rolledBack = outbox.withOutbox(async () => {
    expect(await outbox.scheduled.cancel(locked)).toBe(true)
    expect(await outbox.pollOnce()).toBe(1)
    expect(sent).toEqual([free])
    throw failure
  })
  await expect(rolledBack).rejects.toBe(failure)
  expect(await outbox.pollOnce()).toBe(1)
  expect(sent).toEqual([free, locked])
})

// Each event is due within some milliseconds of its cancellation, before or after, on two instances. Half of them are cancelled in a
// unit of work, and a part of these roll back.
it('goes out exactly if it is not cancelled, also when it becomes due at that moment', {
  timeout: 120_000,
}, async () => {
  const options = { poller: true, pollInterval: '20ms' } as const
  const instances = [recording(fixture, options), recording(fixture, options)]
  for (const { outbox } of instances) await outbox.start()
  const { outbox } = instances[0]!
  const [cancelled, kept] = [new Set<string>(), new Set<string>()]

  const cancelOne = async (id: string, n: number) => {
    const { scheduled } = instances[n % 2]!.outbox
    if (n % 4 < 2) return await scheduled.cancel(id)
    let isCancelled = false
    const work = instances[n % 2]!.outbox.withOutbox(async () => {
      isCancelled = await scheduled.cancel(id)
      if (n % 8 >= 6) throw failure
    })
    await work.catch((error: unknown) => {
      if (error !== failure) throw error
      isCancelled = false
    })
    return isCancelled
  }
  const race = async (worker: number) => {
    for (let n = worker; n < 600 || Math.min(cancelled.size, kept.size) < 50; n += 4) {
      const id = await schedule(outbox, { deliverAfter: n % 12 })
      // Let it come closer to being due, by work and not by a timer.
      for (let turns = n % 5; turns > 0; turns -= 1) await fixture.sql`select 1`
      const list = (await cancelOne(id, n)) ? cancelled : kept
      list.add(id)
    }
  }
  await Promise.all([0, 1, 2, 3].map(race))
  const sent = () => new Set(instances.flatMap((one) => one.sent))
  await waitUntil(() => [...kept].every((id) => sent().has(id)), {
    message: () => `${[...kept].filter((id) => !sent().has(id)).length} more go out`,
  })
  expect([...cancelled].filter((id) => sent().has(id))).toEqual([])
  await waitUntil(
    async () => (await fixture.rows()).every(({ status }) => status === 'published'),
    { message: 'all are recorded' },
  )
  expect((await fixture.rows()).map(({ id }) => id).toSorted()).toEqual([...kept].toSorted())
})
