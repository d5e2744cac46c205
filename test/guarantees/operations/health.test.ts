// A look inside: the numbers are right, they stay cheap on a large table, and red flags are raised.
import { expect, it } from 'vitest'
import { blockedHandler } from '../../support/timing/blocked-handler.ts'
import { openCountedSession } from '../../support/servers/counted-session.ts'
import { connect } from '../../support/servers/database.ts'
import { useFixture } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, failedAs, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { nextEvent } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

it('looks at as many events of one topic, however many others have had events', async () => {
  const outbox = fixture.handling({})
  const insert = (topics: number, each: number, status: string) => fixture.sql`
    insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers, status,
      attempts, max_attempts, available_at, occurred_at)
    select gen_random_uuid(), 10 * t + n, 'order', n, 'Good', 'topic' || t, '1', '{}', ${status}, 1, 10, now(), now()
    from generate_series(1, ${topics}::int) t, generate_series(1, ${each}::int) n`
  await insert(200, 1, 'failed')
  expect(await outbox.stats()).toMatchObject({ pending: { count: 200 }, retrying: 200 })
  await fixture.sql`truncate outbox`
  await insert(1, 900, 'failed')
  expect(await outbox.stats()).toMatchObject({
    pending: { count: 900, exact: true },
    due: 900,
    retrying: 900,
  })
})

it('counts by status, and tells the lag, the attempts and the latency per event type', async () => {
  const handlers = {
    Good: () => {},
    Better: () => {},
    Bad: () => Promise.reject(new Error('no')),
    Doomed: () => Promise.reject(new Error('never')),
  }
  const outbox = fixture.handling(handlers, {
    maxAttemptsByType: { Doomed: 1 },
    backoffBase: '20m',
  })
  expect(await outbox.stats()).toMatchObject({ pending: { count: 0 }, lagMs: null, latency: {} })
  await outbox.withOutbox(async (_, emit) => {
    emit(['Good', 'Good', 'Better', 'Bad', 'Doomed'].map((type) => newEvent({ type })))
  })
  await outbox.pollOnce()
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ type: 'Good' })))
  await fixture.sql`
    update outbox set created_at = published_at - interval '3 s' where event_type = 'Better'`
  await fixture.sql`
    update outbox set created_at = clock_timestamp() - interval '1 h' where event_type = 'Bad'`
  const stats = await outbox.stats()
  expect(stats).toMatchObject({
    pending: { count: 2, exact: true },
    dead: { count: 1, exact: true },
    published: { count: 3, exact: true },
    due: 1,
    retrying: 1,
    mostAttempts: 1,
    lastMinute: { published: 3, failed: 2, duplicates: 0, polls: 1, claimed: 5 },
  })
  expect(stats.lagMs).toBeGreaterThanOrEqual(3_600_000)
  expect(stats.latency).toMatchObject({
    Good: { events: 2 },
    Better: { events: 1, medianMs: 3_000, p95Ms: 3_000, maxMs: 3_000 },
  })
  expect(Object.keys(stats.latency)).toEqual(['Better', 'Good'])
})

it('counts exactly, or says at least how many, on a table that was never analyzed', async () => {
  const insert = (from: number, to: number) => fixture.sql`
    insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers, status,
      max_attempts, available_at, occurred_at, published_at)
    select gen_random_uuid(), n, 'order', n, 'OrderCompleted', 'order', '1', '{}',
      case when n % 3 = 0 then 'pending' when n % 3 = 1 then 'dead_letter' else 'published' end,
      10, now(), now(), now()
    from generate_series(${from}::int, ${to}::int) n`
  await fixture.sql`alter table outbox set (autovacuum_enabled = off)`
  const read = async () => {
    const [row] = await fixture.sql`
      select (t.seq_tup_read + sum(i.idx_tup_read))::int as rows
      from pg_stat_user_tables t join pg_stat_user_indexes i using (relid)
      where t.relname = 'outbox' group by t.seq_tup_read`
    return row!['rows'] as number
  }
  await insert(1, 60_000)
  // In a session that is over when the reads of the next one are counted.
  const session = openCountedSession(fixture, 3)
  const outbox = fixture.handling({}, { db: session.db })
  const { pending, dead, published } = await outbox.stats()
  expect([pending, dead]).toEqual([
    { count: 20_000, exact: true },
    { count: 20_000, exact: true },
  ])
  expect(published.exact).toBe(false)
  expect(published.count).toBeGreaterThan(0)
  expect(published.count).toBeLessThanOrEqual(10_000)
  // Whether it is more than a limit is known, whatever the limit.
  expect((await outbox.health({ maxPending: 19_999 })).flags).toMatchObject([{ flag: 'pending' }])
  expect(await outbox.health({ maxPending: 20_000 })).toMatchObject({ ok: true })
  await session.end()

  await insert(60_001, 450_000)
  const before = await read()
  const counted = openCountedSession(fixture, 3)
  const large = await fixture.handling({}, { db: counted.db }).stats()
  await counted.end()
  const atLeast = { count: 100_000, exact: false }
  expect(large).toMatchObject({ pending: atLeast, dead: atLeast, due: 10_000 })
  const rows = (await read()) - before
  expect(rows).toBeGreaterThan(200_000)
  // All rows would be 450,000, and more than once.
  expect(rows).toBeLessThan(300_000)
  const { flags } = await fixture.handling({}).health({ maxPending: 140_000, maxDead: 99_999 })
  expect(flags.map(({ flag }) => flag)).toEqual(['pending', 'dead'])
  expect(flags[1]!.message).toMatch(/at least 100000 dead letters/)
})

it('tells the latency of the newest thousand events', async () => {
  const insert = (count: number, days: number, ms: number) => fixture.sql`
    insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers, status,
      max_attempts, available_at, occurred_at, created_at, published_at)
    select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0')
        || '7' || substr(md5(random()::text), 1, 19))::uuid, n, 'order', n, 'OrderCompleted', 'order', '1',
      '{}', 'published', 10, at, at, at, at + (n + ${ms}::int) * interval '1 ms'
    from generate_series(1, ${count}::int) n, (select now() - ${days}::int * interval '1 day' as at) t`
  await insert(500, 2, 3_600_000)
  await insert(1_000, 1, 0)
  const { OrderCompleted } = (await fixture.handling({}).stats()).latency
  expect(OrderCompleted).toMatchObject({ events: 1_000, maxMs: 1_000 })
  expect(OrderCompleted!.medianMs).toBeCloseTo(500.5)
  expect(OrderCompleted!.p95Ms).toBeCloseTo(950.05)
})

it('tells durations that can be read: whole milliseconds of lag, hundredths of latency', async () => {
  const outbox = fixture.handling({})
  await outbox.withOutbox(async (_, emit) => {
    for (const type of ['A', 'B', 'B', 'C']) emit({ ...newEvent(), type })
  })
  await fixture.sql`
    update outbox set status = 'published', published_at = created_at + seq * interval '1234.567 ms'
    where event_type <> 'C'`
  const { lagMs, latency } = await outbox.stats()
  expect(Number.isInteger(lagMs)).toBe(true)
  const figures = Object.values(latency).flatMap(({ medianMs, p95Ms, maxMs }) => [
    medianMs,
    p95Ms,
    maxMs,
  ])
  expect(figures).toHaveLength(6)
  for (const ms of figures) expect(String(ms)).toMatch(/^\d+(\.\d{1,2})?$/)
})

it('is well when nothing is wrong', async () => {
  const outbox = fixture.handling({ OrderCompleted: () => {} })
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  expect(await outbox.health()).toMatchObject({
    ok: true,
    flags: [],
    stats: { pending: { count: 1 } },
  })
})

it('raises a flag for too many that wait, at the limit it is given', async () => {
  const outbox = fixture.handling({})
  await outbox.withOutbox(async (_, emit) => {
    emit(Array.from({ length: 1_001 }, () => newEvent()))
  })
  expect(await outbox.health()).toMatchObject({
    ok: false,
    flags: [{ flag: 'pending', message: 'more than 1000 events are waiting to be sent' }],
  })
  expect(await outbox.health({ maxPending: 1_001 })).toMatchObject({ ok: true })
})

it('raises a flag for dead letters at the limit it is given, and at the first where they hold others', async () => {
  const settings = { maxAttempts: 1 } as const
  const outbox = fixture.handling({}, settings)
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await outbox.pollOnce()
  expect(await outbox.health()).toMatchObject({ ok: true })
  const flags = [{ flag: 'dead', message: '1 dead letter must be retried or discarded' }]
  expect(await outbox.health({ maxDead: 0 })).toMatchObject({ ok: false, flags })
  const holding = fixture.handling({}, { ...settings, onDeadLetter: 'hold' })
  expect(await holding.health()).toMatchObject({ ok: false, flags })
})

it('raises a flag for too many failures, at the limit it is given', async () => {
  const outbox = fixture.handling({
    Good: () => {},
    Bad: () => Promise.reject(new Error('no')),
  })
  const send = async (type: string, count: number) => {
    await outbox.withOutbox(async (_, emit) => {
      emit(Array.from({ length: count }, () => newEvent({ type })))
    })
    expect(await outbox.pollOnce()).toBe(count)
  }
  await send('Good', 17)
  await send('Bad', 2)
  expect(await outbox.health()).toMatchObject({ ok: true })
  await send('Good', 1)
  expect(await outbox.health()).toMatchObject({
    ok: false,
    flags: [{ flag: 'failures', message: '2 of 20 attempts failed in the last minute' }],
  })
  expect(await outbox.health({ maxFailureRate: 0.1 })).toMatchObject({ ok: true })
})

it('raises a flag for a round of the fallback that took too long, at the limit it is given', async () => {
  const outbox = fixture.handling({
    OrderCompleted: () => new Promise((resolve) => setTimeout(resolve, 20)),
  })
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  expect(await outbox.pollOnce()).toBe(1)
  expect(await outbox.health()).toMatchObject({ ok: true })
  expect(await outbox.health({ maxPoll: '5ms' })).toMatchObject({
    ok: false,
    flags: [{ flag: 'poll', message: expect.stringMatching(/took \d+ms, longer than 5ms/) }],
  })
})

it('raises a flag for a round that took too long and failed, of a job that polls by itself too', async () => {
  const outbox = fixture.handling({}, { threshold: '1s', publishTimeout: '900ms' })
  await fixture.sql.begin(async (tx) => {
    await tx`lock table outbox`
    await expect(outbox.pollOnce()).rejects.toMatchObject({ code: 'STORE_TIMEOUT' })
  })
  expect(await outbox.health({ maxPoll: '4s' })).toMatchObject({ flags: [{ flag: 'poll' }] })
})

it('counts an ack for an event that another instance has recorded already', async () => {
  const { handler, started, release } = blockedHandler()
  const outbox = fixture.handling({ OrderCompleted: handler })
  await outbox.start()
  const duplicate = nextEvent(outbox.events, 'event:duplicate')
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  const id = await started
  await fixture.store().recordPublished([id])
  release()
  expect(await duplicate).toMatchObject({ event: { id }, path: 'immediate' })
  expect((await outbox.stats()).lastMinute).toMatchObject({ published: 1, duplicates: 1 })
})

it.each([
  [
    'topic',
    /^sends to the topic 'order' of the publisher 'scripted' have failed for \d+ m?s: \w*Error: ./,
  ],
  [
    'broker',
    /^sends to the broker of the publisher 'scripted' have failed for \d+ m?s: \w*Error: ./,
  ],
] as const)('raises a flag while a destination is out of reach (%s)', async (scope, message) => {
  let away = true
  const publisher = scriptedPublisher((event) =>
    away ? failedAs('transient', scope) : acked(event),
  )
  const outbox = fixture.outbox({ publisher, poller: true })
  await outbox.start()
  const [open, closed] = [
    nextEvent(outbox.events, 'circuit:open'),
    nextEvent(outbox.events, 'circuit:closed'),
  ]
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await open
  expect(await outbox.health()).toMatchObject({
    ok: false,
    flags: [{ flag: 'circuit', message: expect.stringMatching(message) }],
  })
  away = false
  await closed
  expect(await outbox.health()).toMatchObject({ ok: true })
})

it('answers instead of throwing when the database is away', async () => {
  const connection = connect(fixture.url.replace(/:\d+\//, ':1/'), { connect_timeout: 1 })
  const outbox = fixture.handling({}, { db: connection.db })
  expect(await outbox.health()).toMatchObject({
    ok: false,
    flags: [{ flag: 'database', message: expect.stringContaining('ECONNREFUSED') }],
    stats: null,
  })
  await connection.close()
})

it.each([
  [{ maxPendin: 1 }, /did you mean 'maxPending'/],
  [{ maxPending: -1 }, /maxPending must be a whole number/],
  [{ maxFailureRate: 5 }, /maxFailureRate must be a number from 0 to 1, got 5/],
  [{ maxPoll: 'long' }, /maxPoll must be a duration/],
])('refuses the limits %j', async (limits, message) => {
  await expect(fixture.handling({}).health(limits as never)).rejects.toThrow(message)
})
