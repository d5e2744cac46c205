// Anyone on call can look at the events in the table, with a role that may only read, and at a cost that does not depend on
// how many there are.
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { describe, expect, it } from 'vitest'
import type { EventListing, NewEvent, Outbox } from '../../../src/index.ts'
import { newEventId } from '../../../src/event/event-id.ts'
import { insertOldRows } from '../../support/old-rows.ts'
import { openCountedSession, runCounted } from '../../support/servers/counted-session.ts'
import { connect } from '../../support/servers/database.ts'
import { type Fixture, useFixture } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { blockedHandler } from '../../support/timing/blocked-handler.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const DAY_MS = 86_400_000

type Browsed = Pick<Outbox<PostgresJsDatabase>, 'browse'>

/** All pages: the payload is not shown, so events are known by their aggregate's id. */
async function listAll({ browse }: Browsed, listing: EventListing = {}) {
  const found: string[] = []
  let pages = 0
  for (let after: string | null = null; pages === 0 || after !== null; pages += 1) {
    const { events, next } = await browse.list({ ...listing, after })
    found.push(...events.map(({ aggregateId }) => aggregateId))
    after = next
  }
  return { found, pages }
}

async function emit(outbox: Outbox<PostgresJsDatabase>, events: readonly Partial<NewEvent>[]) {
  return await outbox.withOutbox(async (_, emitted) =>
    emitted(events.map((event) => newEvent(event))),
  )
}

for (const partitioned of [false, true]) {
  describe(partitioned ? 'a table with partitions' : 'a plain table', () => {
    const fixture = useFixture({ partitioned })
    describeListing(fixture)
    describeCost(fixture)
  })
}

function describeListing(fixture: Fixture) {
  it('lists events page by page, newest or oldest first, each once', async () => {
    const outbox = fixture.handling({})
    await emit(
      outbox,
      Array.from({ length: 25 }, (_, n) => ({ aggregateId: n })),
    )
    const inOrder = Array.from({ length: 25 }, (_, n) => String(n))
    const oldest = await listAll(outbox, { limit: 10, order: 'oldest' })
    expect(oldest).toEqual({ found: inOrder, pages: 3 })
    expect(await listAll(outbox, { limit: 5 })).toEqual({ found: inOrder.toReversed(), pages: 5 })
    expect((await listAll(outbox)).pages).toBe(1)
  })

  it('lists what came after an event, for a look that goes on', async () => {
    const outbox = fixture.handling({})
    const ids = await emit(outbox, [
      { aggregateId: 'a' },
      { aggregateId: 'b' },
      { aggregateId: 'c' },
    ])
    const { events } = await outbox.browse.list({ order: 'oldest', after: ids[0]! })
    expect(events.map(({ aggregateId }) => aggregateId)).toEqual(['b', 'c'])
    expect(await outbox.browse.list({ order: 'oldest', after: ids[2]! })).toEqual({
      events: [],
      next: null,
    })
  })

  it('finds events by everything that is known of them', async () => {
    const outbox = fixture.handling(
      { OrderCompleted: () => {}, OrderPaid: () => Promise.reject(new Error('no')) },
      { backoffBase: '10m' },
    )
    const ids = await emit(outbox, [
      { aggregateId: 'sent' },
      { aggregateId: 'rests', type: 'OrderPaid' },
      { aggregateId: 'dead', type: 'OrderPaid', maxAttempts: 1, aggregateType: 'cart' },
    ])
    await waitUntil(async () => (await outbox.pollOnce()) === 0, { message: 'nothing is due' })
    await emit(outbox, [{ aggregateId: 'waits' }])
    const find = async (listing: EventListing) => (await listAll(outbox, listing)).found
    expect(await find({})).toEqual(['waits', 'dead', 'rests', 'sent'])
    const { events } = await outbox.browse.list({ order: 'oldest' })
    // What rests is not held, although the fallback does not look at it yet.
    expect(events).toMatchObject([
      { attempts: 0, error: null, isLeased: false },
      { attempts: 1, error: expect.stringContaining('no'), isLeased: false },
      { attempts: 1, error: expect.stringContaining('no'), isLeased: false },
      { attempts: 0, error: null, isLeased: false },
    ])
    expect(await find({ id: ids[1]! })).toEqual(['rests'])
    expect(await find({ id: [ids[0]!, ids[2]!, randomUUID()] })).toEqual(['dead', 'sent'])
    expect(await find({ id: ids[0]!, status: 'failed' })).toEqual([])
    expect(await find({ status: 'published' })).toEqual(['sent'])
    expect(await find({ status: 'failed' })).toEqual(['rests'])
    expect(await find({ status: 'pending' })).toEqual(['waits'])
    expect(await find({ status: 'dead_letter' })).toEqual(['dead'])
    expect(await find({ status: ['failed', 'dead_letter'] })).toEqual(['dead', 'rests'])
    expect(await find({ status: ['failed', 'pending'], order: 'oldest' })).toEqual([
      'rests',
      'waits',
    ])
    expect(await find({ status: ['published', 'pending'] })).toEqual(['waits', 'sent'])
    expect(await find({ type: 'OrderPaid' })).toEqual(['dead', 'rests'])
    expect(await find({ type: 'OrderPaid', topic: 'cart' })).toEqual(['dead'])
    expect(await find({ aggregateType: 'order', aggregateId: 'sent' })).toEqual(['sent'])
    expect(await find({ topic: 'cart', status: 'failed' })).toEqual([])
    expect(await find({ aggregateId: `'; drop table outbox; --` })).toEqual([])
  })

  it('finds events by the time in their ids, before the first and after the last too', async () => {
    for (const days of [1, 3, 5]) {
      await insertOldRows(fixture.sql, { count: 2, status: 'published', days })
    }
    await insertOldRows(fixture.sql, { count: 1, status: 'dead_letter', days: 3 })
    const outbox = fixture.handling({})
    const ago = (days: number) => new Date(Date.now() - days * DAY_MS)
    const count = async (listing: EventListing) => (await listAll(outbox, listing)).found.length
    expect(await count({})).toBe(7)
    expect(await count({ savedSince: ago(2) })).toBe(2)
    expect(await count({ savedBefore: ago(4) })).toBe(2)
    expect(await count({ savedSince: ago(4), savedBefore: ago(2) })).toBe(3)
    expect(await count({ savedSince: ago(4), savedBefore: ago(2), status: 'dead_letter' })).toBe(1)
    expect(await count({ savedSince: ago(2), status: 'dead_letter' })).toBe(0)
    expect(await count({ savedSince: new Date(-8.64e15) })).toBe(7)
    expect(await count({ savedBefore: new Date(-1) })).toBe(0)
    expect(await count({ savedBefore: new Date(8.64e15) })).toBe(7)
  })

  it('shows an event with everything, and no payloads in lists', async () => {
    const outbox = fixture.handling({}, { workerId: 'me' })
    const [id] = await emit(outbox, [
      { aggregateId: 'one', payload: { secret: 'x' }, headers: { 'x-key': 'y' }, maxAttempts: 4 },
    ])
    const event = (await outbox.browse.show(id!))!
    expect(event).toMatchObject({
      id,
      status: 'pending',
      type: 'OrderCompleted',
      aggregateType: 'order',
      topic: 'order',
      aggregateId: 'one',
      attempts: 0,
      maxAttempts: 4,
      publishedAt: null,
      error: null,
      isLeased: false,
      payload: '{"secret":"x"}',
      headers: { 'x-key': 'y' },
      behind: [],
      lastAttemptAt: null,
    })
    for (const time of [event.createdAt, event.availableAt, event.occurredAt, event.updatedAt]) {
      expect(Math.abs(time.getTime() - Date.now())).toBeLessThan(60_000)
    }
    expect(Number.isSafeInteger(event.lane)).toBe(true)
    const [summary] = (await outbox.browse.list()).events
    expect(event).toMatchObject(summary!)
    for (const field of ['payload', 'headers', 'lane']) expect(summary).not.toHaveProperty(field)
    expect(await outbox.browse.show(randomUUID())).toBeNull()
  })

  it('follows what comes and what becomes of it', async () => {
    const outbox = fixture.handling({ OrderCompleted: () => {}, OrderPaid: () => {} })
    await emit(outbox, [{ aggregateId: 'before' }])
    const tail = outbox.browse.tail()
    const paid = outbox.browse.tail({ type: 'OrderPaid', status: 'published' })
    const seen = async (from: typeof tail) =>
      (await from.next()).map(({ aggregateId, status }) => `${aggregateId} ${status}`)
    expect([await seen(tail), await seen(paid)]).toEqual([[], []])
    await fixture.sql.begin(async (late) => {
      await late`
        insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers,
          max_attempts, available_at, occurred_at)
        values (${newEventId()}, 1, 'order', 'late', 'OrderPaid', 'order', '1', '{}', 10, now(), now())`
      await emit(outbox, [{ aggregateId: 'one' }, { aggregateId: 'two' }])
      expect(await seen(tail)).toEqual(['one pending', 'two pending'])
      expect(await seen(tail)).toEqual([])
    })
    expect([await seen(tail), await seen(paid)]).toEqual([['late pending'], []])
    await waitUntil(async () => (await outbox.pollOnce()) === 0, { message: 'nothing is due' })
    const sent = ['before', 'late', 'one', 'two'].map((name) => `${name} published`)
    expect([await seen(tail), await seen(paid)]).toEqual([sent, ['late published']])
  })

  it('says which process holds an event, and until when', async () => {
    const blocked = blockedHandler()
    const outbox = fixture.handling({ OrderCompleted: blocked.handler }, { workerId: 'the holder' })
    const [id] = await emit(outbox, [{}])
    const round = outbox.pollOnce()
    await blocked.started
    const event = (await outbox.browse.show(id!))!
    expect(event).toMatchObject({ isLeased: true, workerId: 'the holder' })
    expect(event.availableAt.getTime()).toBeGreaterThan(Date.now())
    blocked.release()
    await round
    const sent = (await outbox.browse.show(id!))!
    expect(sent).toMatchObject({ isLeased: false, status: 'published' })
    expect(sent.publishedAt!.getTime()).toBeGreaterThanOrEqual(sent.createdAt.getTime())
  })

  it('says what an event waits behind: earlier ones of its lane, and dead letters that hold it', async () => {
    const outbox = fixture.handling(
      {
        OrderCompleted: ({ payload }) =>
          payload === 'bad' ? Promise.reject(new Error()) : undefined,
      },
      { onDeadLetter: 'hold', backoffBase: '10m' },
    )
    const one = { aggregateId: 'one' }
    const dead = await emit(outbox, [{ ...one, payload: 'bad', maxAttempts: 1 }])
    await outbox.pollOnce()
    const ids = await emit(outbox, [
      ...Array.from({ length: 12 }, () => one),
      { aggregateId: 'two', payload: 'bad' },
      { aggregateId: 'two' },
    ])
    await outbox.pollOnce()
    const behind = async (id: string) => (await outbox.browse.show(id))!.behind
    expect(await behind(ids[1]!)).toMatchObject([
      { id: dead[0], status: 'dead_letter' },
      { id: ids[0], status: 'pending' },
    ])
    expect((await behind(ids[11]!)).map(({ id }) => id)).toEqual([dead[0], ...ids.slice(0, 9)])
    expect(await behind(ids[13]!)).toMatchObject([{ id: ids[12], status: 'failed' }])
    expect(await behind(dead[0]!)).toEqual([])
    const continuing = fixture.handling({})
    expect((await continuing.browse.show(ids[0]!))!.behind).toEqual([])
  })

  it('says whether an event waits because of a pause', async () => {
    const outbox = fixture.handling({}, { immediate: false })
    const [id] = await emit(outbox, [{}])
    const isPaused = async () => (await outbox.browse.show(id!))!.isPaused
    expect(await isPaused()).toBe(false)
    const { topic } = (await outbox.browse.show(id!))!
    for (const what of [topic, null]) {
      await outbox.pause(what)
      expect(await isPaused()).toBe(true)
      expect((await outbox.browse.list()).events).toMatchObject([{ isPaused: true }])
      await outbox.resume(what)
      expect(await isPaused()).toBe(false)
    }
  })

  it('needs no more than the right to read', async () => {
    const role = uniqueName('reader')
    const outbox = fixture.handling(
      { OrderCompleted: () => Promise.reject(new Error('order 7 is bad')) },
      { maxAttempts: 1 },
    )
    const [id] = await emit(outbox, [{}])
    await outbox.pollOnce()
    await fixture.sql.unsafe(`create role "${role}" login;
      grant select on outbox, outbox_pauses to "${role}"`)
    const url = new URL(fixture.url)
    url.username = role
    const connection = connect(url.href)
    try {
      const reading = fixture.handling({}, { db: connection.db })
      expect((await reading.browse.list()).events).toMatchObject([{ id }])
      expect((await reading.browse.list({ status: 'dead_letter' })).events).toHaveLength(1)
      expect(await reading.browse.show(id!)).toMatchObject({ payload: '{"total":42}' })
      expect(await reading.failures.groups()).toMatchObject([{ count: 1 }])
      await expect(reading.failures.retry({ all: true })).rejects.toMatchObject({
        code: 'STORE_FAILED',
      })
    } finally {
      await connection.close()
      await fixture.sql.unsafe(`drop owned by "${role}"; drop role "${role}"`)
    }
  })

  it('refuses listings that mean nothing, and says what would', async () => {
    const { browse } = fixture.handling({})
    const refused = async (listing: unknown, message: RegExp) =>
      await expect(browse.list(listing as never)).rejects.toThrow(message)
    await refused({ limit: 1_001 }, /limit must be a whole number from 1 to 1000/)
    await refused({ after: 'x' }, /after must be the id of an event/)
    await refused({ order: 'random' }, /order must be one of 'newest', 'oldest'/)
    await refused({ status: 'dead' }, /status must be one of/)
    await refused({ status: [] }, /at least one of/)
    await refused({ typ: 'x' }, /did you mean 'type'/)
    await refused({ topic: 'a\u0000' }, /without U\+0000/)
    await refused({ savedSince: 7 }, /valid Date/)
    await expect(browse.show('x')).rejects.toThrow('a UUID')
    await expect(browse.show(undefined as never)).rejects.toThrow('a UUID')
  })
}

const MANY = 200_000

/** Ten of them pending, failed and dead among many that were published, over several days. */
function describeCost(fixture: Fixture) {
  it(`reads a page of ${MANY} events from an index, and no more than it has to`, {
    timeout: 180_000,
  }, async () => {
    for (const days of [1, 2, 3, 4]) {
      await insertOldRows(fixture.sql, { count: MANY / 4, status: 'published', days })
    }
    for (const status of ['pending', 'failed', 'dead_letter']) {
      await insertOldRows(fixture.sql, { count: 10, status, days: 3 })
    }
    await insertOldRows(fixture.sql, { count: 50, status: 'published', days: 10 })
    await runCounted(
      fixture,
      sql`update outbox set event_type = 'Rare' where id in (select id from outbox order by id limit 3)`,
    )

    const ago = (days: number) => new Date(Date.now() - days * DAY_MS)
    const firstPage = await readBy(fixture, (outbox) => outbox.browse.list())
    expect(firstPage.result.events).toHaveLength(100)
    expect(firstPage.reads).toBeLessThan(1_000)
    const { events, next } = firstPage.result
    expect(next).toBe(events.at(-1)!.id)
    expect((await readBy(fixture, (o) => o.browse.list({ after: next }))).reads).toBeLessThan(1_000)

    const range = { savedSince: ago(11), savedBefore: ago(9) }
    const inRange = await readBy(fixture, (outbox) =>
      outbox.browse.list({ ...range, type: 'None' }),
    )
    expect(inRange.result).toEqual({ events: [], next: null })
    expect(inRange.reads).toBeLessThan(1_000)

    for (const status of ['pending', 'failed', 'dead_letter'] as const) {
      const few = await readBy(fixture, (outbox) => outbox.browse.list({ status, order: 'oldest' }))
      expect(few.result.events).toHaveLength(10)
      expect(few.result.next).toBeNull()
      expect(few.reads).toBeLessThan(1_000)
    }

    const rare = await readBy(fixture, (outbox) => outbox.browse.list({ type: 'Rare' }))
    expect(rare.result.events).toEqual([])
    expect(rare.result.next).not.toBeNull()
    // What it looks at, and once more to find where it stopped.
    expect(rare.reads).toBeLessThan(110_000)
    const { result: all } = await readBy(fixture, (outbox) => listAll(outbox, { type: 'Rare' }))
    expect(all.found).toHaveLength(3)
    expect(all.pages).toBe(5)

    const { id } = events[0]!
    const shown = await readBy(fixture, (outbox) => outbox.browse.show(id))
    expect(shown.result).toMatchObject({ id })
    expect(shown.reads).toBeLessThan(100)

    const groups = await readBy(fixture, (outbox) => outbox.failures.groups())
    expect(groups.result.map(({ count }) => count)).toEqual([10, 10])
    expect(groups.reads).toBeLessThan(1_000)
  })
}

/** What an action of an outbox on a connection of its own reads: entries of indexes, and rows of scans. */
async function readBy<T>(
  fixture: Fixture,
  action: (outbox: Outbox<PostgresJsDatabase>) => Promise<T>,
) {
  const before = await countReads(fixture)
  const session = openCountedSession(fixture)
  const result = await action(fixture.handling({}, { db: session.db }))
  await session.end()
  return { result, reads: (await countReads(fixture)) - before }
}

async function countReads(fixture: Fixture): Promise<number> {
  const [row] = await fixture.sql`
    select (select sum(seq_tup_read) from pg_stat_user_tables where relname like 'outbox%')::int
      + (select sum(idx_tup_read) from pg_stat_user_indexes where relname like 'outbox%')::int as reads`
  return row!['reads'] as number
}
