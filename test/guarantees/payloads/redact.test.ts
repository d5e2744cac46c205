// outbox.redact(): what published events and dead letters say of a person is erased, and what still has to go out is left.
import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import { expect, it } from 'vitest'
import { databaseOf } from '../../../src/drivers/database-of.ts'
import { executorOf } from '../../../src/drivers/own-transaction.ts'
import { prepareEvent } from '../../../src/event/prepare.ts'
import type { Outbox } from '../../../src/index.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { lenientRules, newEvent } from '../../support/doubles/sample-events.ts'
import { acked, failedAs, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { describeEach } from '../../support/fixture.ts'
import { drizzleOnPostgresJs, onNodePostgres } from '../../support/drivers.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

describeEach([drizzleOnPostgresJs, onNodePostgres], (fixture) => {
  const newOutbox = (options: object = {}) =>
    fixture.outbox({ publisher: scriptedPublisher(acked), immediate: false, ...options })
  const person = { aggregateType: 'person', aggregateId: 'p-1' }
  const emit = (outbox: Outbox, ...events: Parameters<typeof newEvent>[0][]) =>
    outbox.withOutbox((_, emitEvents) =>
      emitEvents(events.map((event) => newEvent({ payload: { name: 'Jane Doe' }, ...event }))),
    )
  const wholeTable = async () => {
    const rows = await fixture.sql<{ row: string }[]>`select o::text as row from outbox o`
    return rows.map(({ row }) => row)
  }
  const naming = async () => (await wholeTable()).filter((row) => row.includes('Jane Doe')).length

  it('erases payload, named headers and errors of all that an aggregate has behind it', async () => {
    const logger = recordingLogger()
    const publisher = scriptedPublisher((event) =>
      event.type === 'Odd'
        ? { ok: false, kind: 'permanent', error: new Error('Jane Doe is not known') }
        : acked(event),
    )
    const outbox = newOutbox({ publisher, deadLetterTopic: 'dead', logger })
    const headers = { name: 'Jane Doe', tenant: 't' }
    await emit(outbox, { ...person, headers }, { ...person, type: 'Odd', headers })
    await emit(outbox, { ...person, aggregateId: 'p-2' }, { aggregateId: 'p-1' })
    await outbox.drain()
    await outbox.drain()
    expect(await naming()).toBe(5)
    const redacted = await outbox.redact(person, {
      payload: { redacted: true },
      headers: ['name'],
      by: 'ada',
    })
    // The event, the dead letter and its copy.
    expect(redacted).toEqual({ redacted: 3, left: 0 })
    expect(await naming()).toBe(2)
    const rows = await fixture.sql<{ payload: string; headers: object; last_error: string }[]>`
      select payload::text, headers, last_error from outbox order by seq`
    expect(rows[0]).toMatchObject({ payload: '{"redacted":true}', last_error: null })
    expect(rows[0]!.headers).toEqual({ tenant: 't' })
    expect(rows[1]).toMatchObject({ payload: '{"redacted":true}', last_error: 'redacted' })
    expect(rows[4]!.headers).toMatchObject({ tenant: 't', 'dead-letter-type': 'Odd' })
    expect(logger.lines.filter(({ message }) => message === 'events redacted')).toEqual([
      {
        level: 'info',
        message: 'events redacted',
        fields: { redacted: 3, left: 0, by: 'ada', ...person },
      },
    ])
    expect(inspect([rows[0], rows[1], rows[4]], { depth: 9 })).not.toContain('Jane')
  })

  it('leaves what has to go out, and with unsent leaves what a process holds', async () => {
    const publisher = scriptedPublisher(acked)
    const outbox = newOutbox({ publisher })
    await emit(outbox, person, { ...person, deliverAfter: '1h' })
    // Of another process, which sends it right now.
    const holder = newOutbox()
    await emit(holder, person)
    await fixture.sql`update outbox set lease_token = gen_random_uuid(),
      available_at = clock_timestamp() + interval '1 h' where seq = (select max(seq) from outbox)`
    expect(await outbox.redact(person)).toEqual({ redacted: 0, left: 3 })
    expect(await naming()).toBe(3)
    expect(await outbox.redact(person, { unsent: true })).toEqual({ redacted: 2, left: 1 })
    expect(await naming()).toBe(1)
    await outbox.drain()
    expect(publisher.batches).toEqual([[null]])
  })

  it('lets no process send or record what it had in its memory before', async () => {
    const publisher = scriptedPublisher(acked)
    const outbox = newOutbox({ publisher })
    const store = fixture.store()
    const lease = { token: randomUUID(), workerId: 'test', ms: 60_000 }
    const payload = { name: 'Jane Doe' }
    const [first, late] = [1, 2].map(() =>
      prepareEvent(newEvent({ ...person, payload }), lenientRules),
    )
    // Just committed, in a transaction of the application, and about to be leased.
    await databaseOf(fixture.db).begin(({ tx }) => store.saveIn(executorOf(tx), [first!], 'test'))
    // Sent under a lease that is over.
    await store.save(databaseOf(fixture.db), [late!], { ...lease, ms: 1 })
    await waitUntil(
      async () => (await outbox.redact({ id: late!.id }, { unsent: true })).redacted === 1,
      { message: 'its lease is over' },
    )
    expect(await outbox.redact({ id: first!.id }, { unsent: true })).toEqual({
      redacted: 1,
      left: 0,
    })
    expect(await store.lease([first!], lease)).toEqual([])
    const failure = {
      status: 'failed',
      counts: true,
      delayMs: 0,
      copyId: null,
      copyLane: null,
    } as const
    const ref = { id: late!.id, token: lease.token }
    await store.recordFailed([{ ...ref, ...failure, error: 'Jane Doe is not known' }])
    expect(await naming()).toBe(0)
    await outbox.drain()
    expect(publisher.batches).toEqual([[null, null]])
  })

  it('leaves a dead letter that is being retried', async () => {
    const publisher = scriptedPublisher(() => failedAs('permanent'))
    const outbox = newOutbox({ publisher })
    await emit(outbox, person)
    await outbox.drain()
    const redacting = await fixture.sql.begin(async (tx) => {
      await tx`update outbox set status = 'pending', available_at = clock_timestamp()`
      const result = outbox.redact(person)
      await waitUntil(
        async () => {
          const waiting = await fixture.sql`select from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock' and query like '%redact%'`
          return waiting.length === 1
        },
        { message: 'redact() waits for the retry' },
      )
      return { result }
    })
    expect(await redacting.result).toEqual({ redacted: 0, left: 1 })
    expect(await naming()).toBe(1)
  })

  it('reaches every event of a long history, and no others', async () => {
    const outbox = newOutbox()
    await emit(outbox, person, { aggregateType: 'person', aggregateId: 'p-2' })
    await outbox.drain()
    await fixture.sql`
      insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers, max_attempts,
        status, available_at, published_at, occurred_at)
      select gen_random_uuid(), o.lane, o.aggregate_type, o.aggregate_id, o.event_type, o.topic, o.payload, o.headers,
        o.max_attempts, o.status, o.available_at, o.published_at, o.occurred_at
      from outbox o cross join generate_series(1, 5999)`
    expect(await outbox.redact(person)).toEqual({ redacted: 6_000, left: 0 })
    expect(await naming()).toBe(6_000)
    expect(await outbox.redact({ all: true })).toEqual({ redacted: 12_000, left: 0 })
    expect(await naming()).toBe(0)
  })

  it.each([
    [{}, {}, 'redact() needs a filter'],
    [{ status: 'published' }, {}, "'status'"],
    [{ aggregateId: 7 }, {}, 'aggregateId must be a string'],
    [{ id: 'x' }, {}, 'id must be the id of an event'],
    [{ all: true }, { unsent: 'yes' }, 'unsent must be true or false'],
    [{ all: true }, { headers: 'name' }, 'headers must be a list of names'],
    [{ all: true }, { payload: 1n }, 'BigInt'],
    [{ all: true }, { reason: 'x' }, "'reason'"],
  ])('refuses %o with %o', async (selection, details, message) => {
    const outbox = newOutbox()
    await emit(outbox, person)
    await expect(outbox.redact(selection as never, details as never)).rejects.toThrow(message)
    expect(await naming()).toBe(1)
  })
})
