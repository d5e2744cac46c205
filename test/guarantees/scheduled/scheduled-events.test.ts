// A scheduled event goes out when it is due by the database's clock, and not before. It is saved with its transaction or not at
// all, takes no part in the order of its aggregate, and counts as backlog from the time at which it is due.
import { describe, expect, it } from 'vitest'
import type { NewEvent, Outbox, OutboxEvent, OutboxOptions } from '../../../src/index.ts'
import { routerPublisher } from '../../../src/index.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, failedAs, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { useFixture } from '../../support/fixture.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

/** Without a reason to look sooner, this fallback sleeps for an hour. */
const SLEEPY = { poller: true, pollInterval: '1h' } as const
const PAST = new Date('2020-01-01T00:00:00Z')

type Answer = Parameters<typeof scriptedPublisher>[0]

function recording(
  options: Partial<OutboxOptions<Outbox['db']>> = {},
  answer: Answer = acked,
): { outbox: Outbox; sent: OutboxEvent[] } {
  const sent: OutboxEvent[] = []
  const publisher = scriptedPublisher((event) => {
    sent.push(event)
    return answer(event)
  })
  return { outbox: fixture.outbox({ publisher, ...options }) as Outbox, sent }
}

const emit = (outbox: Outbox, ...events: Partial<NewEvent>[]) =>
  outbox.withOutbox(async (_, emitOne) => events.map((event) => emitOne(newEvent(event))))

const payloads = (sent: readonly OutboxEvent[]) =>
  sent.map(({ payload }) => JSON.parse(payload) as unknown)

const arrived = (sent: readonly OutboxEvent[], count: number) =>
  waitUntil(() => sent.length >= count, { message: `${count} events were sent` })

const times = async () =>
  await fixture.sql<{ id: string; status: string; span: number; deliver: number }[]>`
    select id, status, extract(epoch from deliver_at)::float8 * 1000 as deliver,
      extract(epoch from deliver_at - created_at)::float8 * 1000 as span from outbox order by seq`

describe('when it goes out', () => {
  it.each([
    ['from the process that saved it, which looks when it is due', SLEEPY, null],
    ['from another process that saw it in time', { poller: false }, { pollInterval: '100ms' }],
  ] as const)('goes out when it is due and not before, %s', async (_, saver, other) => {
    const { outbox, sent } = recording(saver)
    const others = recording({ poller: true, ...other })
    if (other) await others.outbox.start()
    await outbox.start()
    await emit(outbox, { deliverAfter: '700ms', payload: 'scheduled' }, { payload: 'now' })
    await arrived(sent, 1)
    expect(payloads(sent)[0]).toBe('now')
    const scheduled = other ? others.sent : sent
    await waitUntil(() => payloads(scheduled).includes('scheduled'), { message: 'it goes out' })
    const event = scheduled.find(({ payload }) => payload === '"scheduled"')!
    const row = (await times()).find(({ id }) => id === event.id)!
    expect(row.span).toBeGreaterThan(690)
    // Both by the database's clock.
    expect(event.leasedAt.getTime()).toBeGreaterThanOrEqual(Math.floor(row.deliver))
    expect(event.occurredAt.getTime()).toBeLessThan(row.deliver - 500)
  })

  it('goes out at once if its time has passed', async () => {
    const { outbox, sent } = recording(SLEEPY)
    await outbox.start()
    await emit(outbox, { deliverAt: PAST }, { deliverAfter: 0 }, { deliverAt: new Date(-8.64e15) })
    await arrived(sent, 3)
    expect((await times()).every(({ span }) => span > -1_000)).toBe(true)
  })

  it('counts from the save, however long the transaction has been open', async () => {
    const { outbox } = recording()
    await outbox.withOutbox(async (_, emitOne) => {
      emitOne(newEvent({ deliverAfter: '1h' }))
      await fixture.sql`select pg_sleep(0.3)`
    })
    const [row] = await times()
    expect(row!.status).toBe('scheduled')
    expect(Math.abs(row!.span - 3_600_000)).toBeLessThan(100)
  })

  it('takes deliverAt as it is, by whatever clock the process has', async () => {
    const { outbox } = recording()
    const deliverAt = new Date(Date.now() + 3_600_000)
    await emit(outbox, { deliverAt })
    expect(Math.abs((await times())[0]!.deliver - deliverAt.getTime())).toBeLessThan(1)
    expect(await outbox.pollOnce()).toBe(0)
  })

  it('wakes the fallback for each of many, also for those of other publishers', async () => {
    const sent: string[] = []
    const publisher = () =>
      scriptedPublisher((event) => {
        sent.push(event.id)
        return acked(event)
      })
    const router = routerPublisher({
      publishers: { one: publisher(), two: publisher() },
      routes: { a: 'one', b: 'two' },
    })
    const outbox = fixture.outbox({ publisher: router, ...SLEEPY }) as Outbox
    await outbox.start()
    const ids: string[] = []
    for (let n = 0; n < 20; n += 1) {
      ids.push(...(await emit(outbox, { topic: n % 2 ? 'a' : 'b', deliverAfter: n * 20 })))
    }
    await waitUntil(() => sent.length >= ids.length, { message: 'all went out' })
    expect(sent.toSorted()).toEqual(ids.toSorted())
  })

  it('goes out with pollOnce() of each publisher', async () => {
    const router = routerPublisher({
      publishers: { one: scriptedPublisher(acked), two: scriptedPublisher(acked) },
      routes: { a: 'one', b: 'two' },
    })
    const outbox = fixture.outbox({ publisher: router }) as Outbox
    // Both look at the same time, and one of them makes both events due.
    for (let n = 0; n < 50; n += 1) {
      await emit(outbox, { topic: 'a', deliverAt: PAST }, { topic: 'b', deliverAt: PAST })
      expect(await outbox.pollOnce()).toBe(2)
    }
  })

  it('is found although its transaction committed long after it was due', async () => {
    const { outbox, sent } = recording()
    await emit(outbox, { payload: 'before' })
    expect(await outbox.pollOnce()).toBe(1)
    const opened = await fixture.sql.reserve()
    await opened`begin`
    const id = await outbox.emitIn(opened, newEvent({ deliverAfter: '10ms' }))
    // A look passes what is dead after two seconds, and one more.
    for (const until = performance.now() + 5_000; performance.now() < until; ) {
      expect(await outbox.pollOnce()).toBe(0)
    }
    await opened`commit`
    opened.release()
    expect(await outbox.pollOnce()).toBe(1)
    expect(sent.at(-1)!.id).toBe(id)
  })
})

it('is found by a process that has passed its time, when another one makes it due late', async () => {
  const { outbox, sent } = recording()
  for (const until = performance.now() + 5_000; performance.now() < until; ) {
    await emit(outbox, {})
    expect(await outbox.pollOnce()).toBe(1)
  }
  const [id] = await emit(outbox, { deliverAfter: '1h' })
  await fixture.sql`update outbox set deliver_at = now() - interval '1 min' where id = ${id!}`
  await fixture.store().dueTopics()
  expect(await outbox.pollOnce()).toBe(1)
  expect(sent.at(-1)!.id).toBe(id)
})

describe('saved or nothing', () => {
  it('is gone with its transaction or its savepoint', async () => {
    const { outbox } = recording()
    const work = outbox.withOutbox(async (_, emitOne) => {
      emitOne(newEvent({ deliverAt: PAST }))
      throw new Error('changed its mind')
    })
    await expect(work).rejects.toThrow('changed its mind')
    const [kept] = await outbox.withOutbox(async (tx, emitOne) => {
      const nested = tx.transaction(async () => {
        emitOne(newEvent({ deliverAt: PAST }))
        throw new Error('changed its mind')
      })
      await expect(nested).rejects.toThrow('changed its mind')
      return [emitOne(newEvent({ deliverAt: PAST }))]
    })
    expect((await fixture.rows()).map(({ id }) => id)).toEqual([kept])
  })

  it('goes out from a transaction of your own when it is due', async () => {
    const { outbox, sent } = recording(SLEEPY)
    await outbox.start()
    const ids = await fixture.sql.begin(async (tx) =>
      outbox.emitIn(tx, [
        newEvent({ deliverAfter: '300ms' }),
        newEvent({ deliverAfter: '2h' }),
        newEvent(),
      ]),
    )
    await arrived(sent, 2)
    expect(sent.map(({ id }) => id).toSorted()).toEqual([ids[0]!, ids[2]!].toSorted())
    const rows = await times()
    expect(rows[1]).toMatchObject({ id: ids[1], status: 'scheduled' })
    const due = sent.find(({ id }) => id === ids[0])!
    expect(due.leasedAt.getTime()).toBeGreaterThanOrEqual(Math.floor(rows[0]!.deliver))
  })
})

describe('order', () => {
  const aggregateId = 'one'

  it('neither holds the later events of its aggregate nor waits for the earlier ones', async () => {
    const { outbox, sent } = recording({ backoffBase: '1h', backoffMax: '1h' }, (event) =>
      event.payload === '"fails"' ? failedAs('rejected') : acked(event),
    )
    await outbox.start()
    await emit(outbox, { aggregateId, payload: 'later', deliverAfter: '1h' })
    await emit(outbox, { aggregateId, payload: 'after it' })
    await arrived(sent, 1)
    const failed = nextEvent(outbox.events, 'event:failed')
    await emit(outbox, { aggregateId, payload: 'fails' })
    await failed
    await emit(outbox, { aggregateId, payload: 'held' }, { aggregateId, deliverAt: PAST })
    expect(await outbox.pollOnce()).toBe(1)
    expect(payloads(sent)).toEqual(['after it', 'fails', { total: 42 }])
  })

  it('holds nothing when it fails or is a dead letter', async () => {
    const { outbox, sent } = recording({ onDeadLetter: 'hold', maxAttempts: 2 }, (event) =>
      event.payload === '"fails"'
        ? failedAs('rejected')
        : event.payload === '"dies"'
          ? failedAs('permanent')
          : acked(event),
    )
    await emit(
      outbox,
      { aggregateId, payload: 'dies', deliverAt: PAST },
      { aggregateId, payload: 'fails', deliverAt: PAST },
    )
    expect(await outbox.pollOnce()).toBe(2)
    expect((await fixture.rows()).map(({ status }) => status)).toEqual(['dead_letter', 'failed'])
    await emit(outbox, { aggregateId, payload: 'fine' })
    await outbox.pollOnce()
    expect(payloads(sent)).toContain('fine')
    expect(await outbox.deadLetters.retry({ all: true })).toBe(1)
  })
})

describe('what it counts as', () => {
  it('is no backlog, no lag and no trouble before it is due', async () => {
    const { outbox } = recording({ maxBacklog: 2 })
    await emit(outbox, ...Array.from({ length: 5 }, () => ({ deliverAfter: '1h' }) as const))
    await emit(outbox, {}, { deliverAfter: '1h' }, {})
    await expect(emit(outbox, {})).rejects.toMatchObject({ code: 'BACKLOG_FULL' })
    await emit(outbox, { deliverAfter: '1h' })
    await outbox.pollOnce()
    const { ok, stats } = await outbox.health({ maxPending: 0 })
    expect(ok).toBe(true)
    expect(stats).toMatchObject({
      pending: { count: 0, exact: true },
      scheduled: { count: 7, exact: true },
      due: 0,
      lagMs: null,
    })
  })

  it('is backlog, from the time at which it was due', async () => {
    const { outbox } = recording({ maxBacklog: 1 })
    await emit(outbox, { deliverAfter: 1 })
    await fixture.sql`update outbox set created_at = created_at - interval '1 d'`
    const { pending, scheduled, due, lagMs } = await waitUntil(
      async () => {
        const stats = await outbox.stats()
        return stats.due === 1 && stats
      },
      { message: 'it is due' },
    )
    expect({ pending, scheduled, due }).toEqual({
      pending: { count: 1, exact: true },
      scheduled: { count: 0, exact: true },
      due: 1,
    })
    expect(lagMs).toBeLessThan(60_000)
    await fixture.store().dueTopics()
    expect((await fixture.rows())[0]!.status).toBe('pending')
    expect((await outbox.stats()).lagMs).toBeLessThan(60_000)
    const fresh = recording({ maxBacklog: 1 }).outbox
    await expect(emit(fresh, {})).rejects.toMatchObject({ code: 'BACKLOG_FULL' })
    expect(await outbox.pollOnce()).toBe(1)
    expect((await outbox.stats()).latency['OrderCompleted']!.maxMs).toBeLessThan(60_000)
  })

  it('waits while its topic is paused, and goes out when that is over', async () => {
    const { outbox, sent } = recording(SLEEPY)
    await outbox.start()
    await outbox.pause('order')
    await emit(outbox, { deliverAfter: '50ms' })
    await waitUntil(async () => (await outbox.stats()).pending.count === 1, {
      message: 'it is due',
    })
    expect(sent).toEqual([])
    await outbox.resume('order')
    await arrived(sent, 1)
  })
})

it('is refused with both times, with none that is valid, and beyond ten years', async () => {
  const { outbox } = recording()
  const refused = (event: Partial<NewEvent>) =>
    expect(emit(outbox, event)).rejects.toMatchObject({
      code: 'EVENT_INVALID',
      message: expect.stringContaining('OrderCompleted: deliver'),
    })
  await refused({ deliverAt: new Date(), deliverAfter: '1h' })
  await refused({ deliverAt: new Date(Number.NaN) })
  await refused({ deliverAt: 'tomorrow' as never })
  await refused({ deliverAfter: 'soon' as never })
  await refused({ deliverAfter: -1 })
  await refused({ deliverAfter: '3654d' })
  await refused({ deliverAt: new Date(Date.now() + 3_654 * 86_400_000) })
  await emit(outbox, { deliverAfter: '3653d' })
})
