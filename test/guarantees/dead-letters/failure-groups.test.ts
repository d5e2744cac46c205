// A person sees causes, not events: failures of one cause are one group, and the whole group can be retried or discarded,
// whether its events are dead or rest until their next attempt.
import { randomUUID } from 'node:crypto'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { describe, expect, it } from 'vitest'
import type { FailureGroup, NewEvent, Outbox } from '../../../src/index.ts'
import type { HandledEvent } from '../../../src/publishers/handlers.ts'
import { useFixture } from '../../support/fixture.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { blockedHandler } from '../../support/timing/blocked-handler.ts'
import { waitForSessions } from '../../support/inbox.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

/** An event and the error that its handler throws; null: none. */
type Failure = Partial<NewEvent> & { readonly n?: number; readonly error?: string | null }

/** An outbox whose handlers throw what the event says, for as long as they are broken. */
function fallible(options = {}) {
  const state = { broken: true, handled: [] as unknown[] }
  const handle = ({ payload }: HandledEvent) => {
    const { n, error } = payload as Failure
    if (state.broken && error) throw new Error(error)
    state.handled.push(n)
  }
  const outbox = fixture.handling(
    { OrderCompleted: handle, OrderPaid: handle },
    { backoffBase: '10m', ...options },
  )
  return { outbox, state }
}

/** Emits them and lets each fail once: those with maxAttempts 1 die, the others rest. */
async function fail(outbox: Outbox<PostgresJsDatabase>, events: readonly Failure[]) {
  await outbox.withOutbox(async (_, emit) =>
    emit(
      events.map(({ n = 0, error = 'it failed', ...event }) =>
        newEvent({ payload: { n, error }, ...event }),
      ),
    ),
  )
  await waitUntil(async () => (await outbox.pollOnce()) === 0, { message: 'nothing is left' })
}

const inShort = ({ status, type, topic, error, count }: FailureGroup) =>
  `${count} ${status} ${type} ${topic}: ${error.split(': ').at(-1)}`

const dead = { maxAttempts: 1 }

describe('grouping', () => {
  it('puts failures of one status, type, topic and cause into one group, the largest first', async () => {
    const { outbox } = fallible()
    const refused = (id: number) => ({ error: `order ${id} has no address` })
    await fail(outbox, [
      ...[1, 22, 333].map((id) => ({ ...refused(id), ...dead })),
      { ...refused(4), ...dead, type: 'OrderPaid' },
      { ...refused(5), ...dead, aggregateType: 'cart' },
      ...[6, 7].map((id) => refused(id)),
      { error: 'another cause', ...dead },
    ])
    const groups = await outbox.failures.groups()
    const [largest, second] = groups
    const cause = 'order <number> has no address'
    expect(groups.slice(0, 2).map(inShort)).toEqual([
      `3 dead_letter OrderCompleted order: ${cause}`,
      `2 failed OrderCompleted order: ${cause}`,
    ])
    expect(groups.slice(2).map(inShort).toSorted()).toEqual([
      `1 dead_letter OrderCompleted cart: ${cause}`,
      '1 dead_letter OrderCompleted order: another cause',
      `1 dead_letter OrderPaid order: ${cause}`,
    ])
    expect(await outbox.failures.groups({ limit: 1 })).toEqual([largest])
    const rows = await fixture.rows()
    expect(largest!.example).toEqual({
      id: rows[2]!.id,
      error: expect.stringContaining('order 333 has no address'),
    })
    expect(second).toMatchObject({ exact: true, example: { id: rows[6]!.id } })
  })

  it('says when the first and the last of them was tried', async () => {
    const { outbox } = fallible()
    await fail(outbox, [dead, dead, dead])
    const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute))
    for (const [n, { id }] of (await fixture.rows()).entries()) {
      await fixture.sql`update outbox set last_attempt_at = ${at([5, 1, 9][n]!)} where id = ${id}`
    }
    expect(await outbox.failures.groups()).toMatchObject([
      { count: 3, firstAt: at(1), lastAt: at(9) },
    ])
  })

  it.each([
    ['numbers', 'took 7 ms of 5,000.5', 'took 1234 ms of 3', 'took <number> ms of <number>'],
    ['numbers of any length', 'order 1234567', 'order 12345678901234567890', 'order <number>'],
    [
      'uuids',
      'no row 019c0f5e-7b4a-7000-8000-000000000000',
      `no row ${randomUUID().toUpperCase()}`,
      'no row <id>',
    ],
    [
      'hashes',
      'at 0x1F, commit 3c30816f',
      'at 0xdeadbeef, commit 4838494abc12',
      'at <id>, commit <id>',
    ],
    ['other ids', 'job 01hzx3k8q2vw9y4m', 'job 7gkq02ls81nd0zzp4', 'job <id>'],
    ['short hex ids', 'session 2286e4 is gone', 'session ab12f is gone', 'session <id> is gone'],
    ['other short ids', 'cart k3v9x', 'cart 7q2zw8', 'cart <id>'],
    [
      'lengths of time',
      'after 1m30s, 900ms',
      'after 2m5s, 10000ms',
      'after <number>m<number>s, <number>ms',
    ],
    ['numbered names', 'worker7 left', 'worker12 left', 'worker<number> left'],
    ['single quotes', `can't find 'a b'`, `can't find 'O\\'`, `can't find <text>`],
    [
      'double quotes',
      'type "int", value "1; drop"',
      'type "", value "x"',
      'type <text>, value <text>',
    ],
    ['backticks', 'bad `a`.', 'bad `select 1`.', 'bad <text>.'],
    ['times', 'at 2026-01-02T03:04:05.678Z', 'at 2025-11-30 23:59:59+01:00', 'at <time>'],
    ['times of day', 'since 23:59:59', 'since 01:02:03.456', 'since <time>'],
    ['days', 'on 2026-01-02', 'on 1999-12-31', 'on <time>'],
    ['IP addresses', 'refused 10.0.0.1:9092', 'refused 192.168.100.200:80', 'refused <address>'],
    ['IPv6 addresses', 'from fe80::1:2', 'from 2001:db8:0:0:1:0:0:1', 'from <address>'],
    [
      'URLs',
      'GET https://a.example/x?y=1 failed',
      'GET http://b:80/ failed',
      'GET <address> failed',
    ],
    ['mail addresses', 'to a.b@example.org', 'to someone+tag@mail.example.com', 'to <address>'],
    ['white space', 'two\n  lines', 'two lines', 'two lines'],
  ])('sees past %s', async (_, one, other, boiled) => {
    const { outbox } = fallible()
    await fail(outbox, [
      { error: one, ...dead },
      { error: other, ...dead },
    ])
    const groups = await outbox.failures.groups()
    expect(groups.map(({ error }) => error.split(': ').at(-1))).toEqual([boiled])
    expect(await outbox.failures.retry(groups[0]!)).toBe(2)
  })

  it.each([
    ['words', 'no such topic', 'no such queue'],
    ['names that look like hex', 'decade facade', 'facade decade'],
    ['names with digits', 'no sha256, no http2', 'no utf8, no ipv4'],
    ['apostrophes', `can't read it, won't try`, `can't write it, won't try`],
  ])('tells %s apart', async (_, one, other) => {
    const { outbox } = fallible()
    await fail(outbox, [
      { error: one, ...dead },
      { error: other, ...dead },
    ])
    expect(await outbox.failures.groups()).toHaveLength(2)
  })

  it('groups long errors by how they begin, whatever the length of the numbers in them', async () => {
    const { outbox } = fallible()
    const long = (id: number, rest: string) => `order ${id}: ${'very '.repeat(80)}${rest}`
    await fail(outbox, [
      { error: long(1, 'bad'), ...dead },
      { error: long(123_456_789, 'wrong'), ...dead },
    ])
    const groups = await outbox.failures.groups()
    expect(groups).toMatchObject([{ count: 2 }])
    expect(groups[0]!.error).toHaveLength(300)
    expect(await outbox.failures.discard(groups[0]!)).toBe(2)
  })

  it('counts the newest ten thousand of each kind, says so, and retries all of them', async () => {
    await insert(10_500, 'dead_letter', 'too many')
    await insert(3, 'failed', 'few')
    const { outbox } = fallible()
    const groups = await outbox.failures.groups()
    expect(groups).toMatchObject([
      { status: 'dead_letter', count: 10_000, exact: false },
      { status: 'failed', count: 3, exact: true },
    ])
    expect(await outbox.failures.retry(groups[0]!)).toBe(10_500)
    expect(await outbox.failures.groups()).toMatchObject([{ status: 'failed', count: 3 }])
  })
})

async function insert(count: number, status: string, error: string) {
  await fixture.sql`
    insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers, status,
      attempts, max_attempts, available_at, occurred_at, last_attempt_at, last_error)
    select gen_random_uuid(), n, 'order', n, 'OrderCompleted', 'order', '1', '{}', ${status}, 1, 10,
      now() + interval '1 h', now(), now(), ${error}::text || ' ' || n
    from generate_series(1, ${count}::int) as series(n)`
}

describe('a group', () => {
  it('is sent when it is retried, and no other', async () => {
    const { outbox, state } = fallible()
    await fail(outbox, [
      ...[1, 2].map((n) => ({ n, error: `cause ${n}`, ...dead })),
      { n: 3, error: 'other cause', ...dead },
      { n: 4, error: 'cause 4' },
    ])
    state.broken = false
    const [group] = await outbox.failures.groups()
    expect(await outbox.failures.retry(group!)).toBe(2)
    await waitUntil(async () => (await outbox.pollOnce()) === 0, { message: 'nothing is due' })
    expect(new Set(state.handled)).toEqual(new Set([1, 2]))
    const { status, type, topic, error } = group!
    expect(await outbox.failures.retry({ status: 'failed', type, topic, error })).toBe(1)
    expect(await outbox.failures.retry({ status, type, topic, error })).toBe(0)
    await waitUntil(async () => (await outbox.pollOnce()) === 0, { message: 'nothing is due' })
    expect(new Set(state.handled)).toEqual(new Set([1, 2, 4]))
  })

  it('is found by an error as it was recorded too, also among dead letters, and by topic', async () => {
    const { outbox } = fallible()
    await fail(outbox, [
      { error: 'order 1 is "odd"', ...dead },
      { error: 'order 2 is "even"', ...dead, aggregateType: 'cart' },
      { error: 'order 3 is odd', ...dead },
    ])
    const recorded = (await fixture.rows())[0]!.last_error!
    const listed = await outbox.deadLetters.list({ error: recorded })
    expect(listed.map(({ topic }) => topic)).toEqual(['order', 'cart'])
    expect(await outbox.deadLetters.list({ error: recorded, topic: 'cart' })).toHaveLength(1)
    expect(await outbox.deadLetters.discard({ error: recorded, topic: 'order' })).toBe(1)
    expect(await outbox.failures.discard({ error: recorded })).toBe(1)
    expect(await outbox.deadLetters.list()).toMatchObject([{ error: expect.stringContaining('3') }])
  })

  it('is told from one whose text its own would boil down to', async () => {
    const { outbox } = fallible()
    await fail(outbox, [
      { error: `PUT http://h'orders' failed`, ...dead },
      { error: `PUT http://h/'orders' failed`, ...dead },
      { error: `PUT http://h/'carts' failed`, ...dead },
    ])
    const groups = await outbox.failures.groups()
    expect(groups.map(({ count }) => count)).toEqual([2, 1])
    expect(await outbox.failures.count(groups[1]!)).toEqual({ count: 1, exact: true })
    expect(await outbox.failures.discard(groups[1]!)).toBe(1)
    expect(await outbox.failures.groups()).toMatchObject([{ count: 2 }])
  })

  it('can be selected by id, type, aggregate and time, of both kinds at once', async () => {
    const { outbox } = fallible()
    await fail(outbox, [
      { aggregateId: 'a', ...dead },
      { aggregateId: 'b' },
      { aggregateId: 'c', type: 'OrderPaid' },
      { aggregateId: 'd', aggregateType: 'cart', ...dead },
    ])
    const rows = await fixture.rows()
    const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second))
    for (const [n, { id }] of rows.entries()) {
      await fixture.sql`update outbox set last_attempt_at = ${at(n)} where id = ${id}`
    }
    const { failures } = outbox
    expect(await failures.discard({ failedSince: at(4) })).toBe(0)
    expect(await failures.discard({ id: [randomUUID()] })).toBe(0)
    expect(await failures.discard({ id: rows.map(({ id }) => id), type: 'OrderPaid' })).toBe(1)
    expect(await failures.discard({ aggregateType: 'cart', status: 'failed' })).toBe(0)
    expect(await failures.discard({ aggregateType: 'cart' })).toBe(1)
    expect(await failures.discard({ failedBefore: at(1) })).toBe(1)
    expect(await failures.discard({ failedSince: at(1), aggregateId: 'b' })).toBe(1)
    expect(await fixture.rows()).toEqual([])
  })

  it('is all there is with { all: true }, and what never failed stays', async () => {
    const { outbox } = fallible()
    await fail(outbox, [{}, dead])
    await insert(1, 'pending', '')
    await insert(1, 'published', '')
    expect(await outbox.failures.discard({ all: true })).toBe(2)
    expect((await fixture.rows()).map(({ status }) => status)).toEqual(['pending', 'published'])
  })
})

describe('an event that rests', () => {
  /** A process that began after all of it had failed, has looked once, and looks again in an hour unless it is woken. */
  async function startLater() {
    const later = fallible({ poller: true, pollInterval: '1h' })
    await Promise.all([nextEvent(later.outbox.events, 'poll:done'), later.outbox.start()])
    return later
  }

  const one = { aggregateId: 'one' }

  it('is tried at once when it is retried, and keeps the attempts that it has', async () => {
    await fail(fallible().outbox, [one])
    expect(await fixture.rows()).toMatchObject([{ attempts: 1, available: false }])
    const { outbox } = await startLater()
    expect(await outbox.failures.retry({ status: 'failed' })).toBe(1)
    await waitUntil(async () => (await fixture.rows())[0]!.attempts === 2, {
      message: 'it was tried again',
    })
    expect(await fixture.rows()).toMatchObject([{ status: 'failed' }])
  })

  it('goes out at once when it is retried, and its followers after it', async () => {
    const followers = [2, 3].map((n) => ({ ...one, n, error: null }))
    await fail(fallible().outbox, [{ ...one, n: 1 }, ...followers])
    expect((await fixture.rows()).map(({ available }) => available)).toEqual([false, false, false])
    const { outbox, state } = await startLater()
    state.broken = false
    expect(await outbox.failures.retry({ status: 'failed' })).toBe(1)
    await waitUntil(() => state.handled.length === 3, { message: 'all were sent' })
    expect(state.handled).toEqual([1, 2, 3])
  })

  it('lets those behind it go at once when it is discarded', async () => {
    const followers = [2, 3].map((n) => ({ ...one, n, error: null }))
    await fail(fallible().outbox, [{ ...one, n: 1 }, ...followers])
    expect((await fixture.rows()).map(({ available }) => available)).toEqual([false, false, false])
    const { outbox, state } = await startLater()
    expect(await outbox.failures.discard({ status: 'failed' })).toBe(1)
    await waitUntil(() => state.handled.length === 2, { message: 'the followers were sent' })
    expect(state.handled).toEqual([2, 3])
  })

  it('keeps its place among what is due when it is due already', async () => {
    const { outbox } = fallible()
    await fail(outbox, [{}])
    await fixture.sql`update outbox set available_at = now() - interval '1 h'`
    expect(await outbox.failures.retry({ all: true })).toBe(1)
    const [row] = await fixture.sql`
      select available_at < now() - interval '30 min' as early from outbox`
    expect(row).toEqual({ early: true })
  })

  it('is neither retried nor discarded while a process holds it', async () => {
    const { outbox, state } = fallible()
    await fail(outbox, [{}])
    const blocked = blockedHandler()
    const holder = fixture.handling({ OrderCompleted: blocked.handler })
    await fixture.sql`update outbox set available_at = now()`
    const round = holder.pollOnce()
    await blocked.started
    const before = await fixture.rows()
    expect(before).toMatchObject([{ status: 'failed', leased: true, available: false }])
    expect(await outbox.failures.groups()).toMatchObject([{ status: 'failed', count: 1 }])
    expect(await outbox.failures.retry({ all: true })).toBe(0)
    expect(await outbox.failures.discard({ all: true })).toBe(0)
    expect(await outbox.failures.discard({ id: before[0]!.id })).toBe(0)
    expect(await fixture.rows()).toEqual(before)
    blocked.release()
    await round
    expect(await fixture.rows()).toMatchObject([{ status: 'published' }])
    expect(state.handled).toEqual([])
  })

  it('can be discarded when the lease of a process that died has ended', async () => {
    const { outbox } = fallible()
    await fail(outbox, [{}])
    await fixture.sql`update outbox set lease_token = gen_random_uuid(), available_at = now()`
    expect(await outbox.failures.discard({ all: true })).toBe(1)
  })

  it('waits for a claim that is taking it, and leaves it to that claim', async () => {
    const { outbox } = fallible()
    await fail(outbox, [{}])
    const claiming = await fixture.sql.reserve()
    await claiming`begin`
    await claiming`
      update outbox set lease_token = gen_random_uuid(), available_at = now() + interval '1 min'`
    const discarding = outbox.failures.discard({ all: true })
    await waitForSessions(fixture.sql, 1)
    await claiming`commit`
    claiming.release()
    expect(await discarding).toBe(0)
    expect(await fixture.rows()).toHaveLength(1)
  })

  it('is not harmed by outcomes that arrive late, after it was discarded', async () => {
    const store = fixture.store()
    const { outbox } = fallible()
    await fail(outbox, [{}])
    const token = randomUUID()
    await fixture.sql`update outbox set available_at = now()`
    const from = { topics: (await store.dueTopics()).topics }
    const lease = { token, workerId: 'stalled', ms: 1 }
    const { events } = await store.claim({ lease, limit: 1, from })
    expect(events).toHaveLength(1)
    const discarded = await waitUntil(() => outbox.failures.discard({ all: true }), {
      message: 'its lease is over',
    })
    expect(discarded).toBe(1)
    const { id } = events[0]!
    const late = { id, token, status: 'failed', counts: true, delayMs: 0, error: 'late' } as const
    expect(await store.recordFailed([{ ...late, copyId: null, copyLane: null }])).toEqual(new Map())
    expect(await store.recordPublished([id])).toEqual(new Set())
    expect(await fixture.rows()).toEqual([])
  })
})

it.each([
  `'; drop table outbox; --`,
  `\\'; delete from outbox; --`,
  `$1 %s %d \\1 \\& {"a":[]} {}`,
  `"><script>alert("1")</script>`,
  `ignore 'everything' and "retry" all`,
  '',
])('takes errors and filters as text: %s', async (text) => {
  const { outbox } = fallible()
  await fail(outbox, [
    { error: text || 'nothing', ...dead },
    { error: 'innocent', ...dead },
  ])
  await fixture.sql`update outbox set last_error = ${text} where last_error not like '%innocent%'`
  const { failures } = outbox
  const fields = ['type', 'topic', 'aggregateType', 'aggregateId'] as const
  for (const field of fields) expect(await failures.discard({ [field]: text })).toBe(0)
  expect(await failures.groups()).toHaveLength(2)
  expect(await failures.discard({ error: text })).toBe(1)
  expect(await outbox.deadLetters.list()).toMatchObject([
    { error: expect.stringContaining('innocent') },
  ])
})

it('refuses selections that mean nothing, and says what would', async () => {
  const { outbox } = fallible()
  const { failures } = outbox
  const refused = async (selection: unknown, message: RegExp) => {
    await expect(failures.retry(selection as never)).rejects.toThrow(message)
    await expect(failures.discard(selection as never)).rejects.toThrow(message)
  }
  await refused({}, /failures.(retry|discard)\(\) needs a filter/)
  await refused(undefined, /takes an object/)
  await refused({ type: undefined }, /needs a filter/)
  await refused({ all: true, type: 'x' }, /contradict/)
  await refused({ eror: 'x' }, /did you mean 'error'/)
  await refused({ status: 'pending' }, /status must be one of 'failed', 'dead_letter'/)
  await refused({ id: 'one' }, /a UUID/)
  await refused({ error: 'a\u0000b' }, /without U\+0000/)
  await refused({ error: 7 }, /error must be a string/)
  await refused({ failedSince: 'today' }, /valid Date/)
  await expect(failures.groups({ limit: 0 })).rejects.toThrow('limit must be')
})

it('logs what was changed', async () => {
  const logger = recordingLogger()
  const { outbox } = fallible({ logger })
  await fail(outbox, [{}, dead])
  logger.lines.length = 0
  await outbox.failures.retry({ all: true })
  await outbox.failures.discard({ topic: 'order' }, { by: 'ada' })
  expect(logger.lines.map(({ fields, message }) => [message, fields])).toEqual([
    ['failed events made due now', { count: 1, selected: { status: 'failed' } }],
    ['dead letters reset for retry', { count: 1, selected: { status: 'dead_letter' } }],
    [
      'failed events discarded',
      { count: 1, by: 'ada', selected: { status: 'failed', topic: 'order' } },
    ],
  ])
})

it('refuses details of a change that are none', async () => {
  const { failures, deadLetters } = fallible().outbox
  const all = { all: true } as const
  await expect(failures.retry(all, { bye: 'ada' } as object)).rejects.toThrow("did you mean 'by'")
  await expect(deadLetters.discard(all, { by: '' })).rejects.toThrow(
    'by must be a non-empty string',
  )
  await expect(failures.count(all, { within: 'soon' as '1s' })).rejects.toThrow('within must be')
})

describe('counting', () => {
  it('counts what a change would touch, by each kind of selection', async () => {
    const { outbox } = fallible()
    const { failures } = outbox
    await fail(outbox, [
      { error: 'order 1 has no address', ...dead },
      { error: 'order 2 has no address' },
      { error: 'another', ...dead, type: 'OrderPaid' },
    ])
    const count = async (selection: Parameters<typeof failures.count>[0]) =>
      (await failures.count(selection)).count
    expect(await failures.count({ all: true })).toEqual({ count: 3, exact: true })
    expect(await count({ status: 'failed' })).toBe(1)
    expect(await count({ type: 'OrderPaid' })).toBe(1)
    const [{ error }] = (await failures.groups()) as [FailureGroup]
    expect(await count({ error: 'HandlerError: nothing' })).toBe(0)
    expect(await count({ error })).toBeGreaterThan(0)
    const { id } = (await fixture.rows())[0]!
    expect(await count({ id })).toBe(1)
    expect(await count({ failedBefore: new Date(0) })).toBe(0)
    const [hourAgo, inAnHour] = [-1, 1].map((hours) => new Date(Date.now() + hours * 3_600_000))
    expect(await count({ savedSince: hourAgo!, savedBefore: inAnHour! })).toBe(3)
    expect(await count({ savedBefore: hourAgo! })).toBe(0)
    expect(await failures.discard({ savedSince: inAnHour! })).toBe(0)
    expect(await failures.discard({ savedSince: hourAgo! })).toBe(3)
  })

  it('counts page after page, and stops when its time is over, unless it has found none', async () => {
    await insert(25_000, 'dead_letter', 'too many')
    const { failures } = fallible().outbox
    expect(await failures.count({ all: true })).toEqual({ count: 25_000, exact: true })
    const { count, exact } = await failures.count({ all: true }, { within: 1 })
    expect(exact).toBe(false)
    expect(count).toBeGreaterThan(0)
    expect(count % 10_000).toBe(0)
  })
})

it('boils errors that differ in digits alone down alike, also where a digit means more', async () => {
  const { outbox } = fallible()
  await fail(
    outbox,
    ['at 0x12 of 3', 'at 0x98 of 7', 'at 1x12 of 3', 'at 2x34 of 5'].map((error) => ({
      error,
      ...dead,
    })),
  )
  expect((await outbox.failures.groups()).map(inShort).toSorted()).toEqual([
    expect.stringContaining('at <id> of <number>'),
    expect.stringContaining('at <number>x<number> of <number>'),
  ])
})
