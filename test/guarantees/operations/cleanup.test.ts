// Retention: published events go when they are old enough, by the database's clock; everything else stays.
import { expect, it } from 'vitest'
import { useFixture } from '../../support/fixture.ts'
import { insertOldRows } from '../../support/old-rows.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

// Rows of a partitioned table leave with their day: see partitions.test.ts.
const fixture = useFixture({ partitioned: false })
const handlers = { OrderCompleted: () => {} }

const insertRows = (count: number, status: string, days: number) =>
  insertOldRows(fixture.sql, { count, status, days })

const countRows = async () =>
  Object.fromEntries(
    (await fixture.sql`select status, count(*)::int from outbox group by 1`).map((row) => [
      row['status'],
      row['count'],
    ]),
  ) as Record<string, number>

it('deletes published events after seven days, and keeps whatever is not published', async () => {
  await insertRows(5, 'published', 8)
  await insertRows(3, 'published', 6)
  await insertRows(2, 'pending', 400)
  await insertRows(4, 'dead_letter', 400)
  expect(await fixture.handling(handlers).purge()).toBe(5)
  expect(await countRows()).toEqual({ published: 3, pending: 2, dead_letter: 4 })
})

it('goes by when an event was published, not by when it was saved', async () => {
  await insertRows(2, 'published', 30)
  await fixture.sql`update outbox set published_at = now() where aggregate_id = '1'`
  expect(await fixture.handling(handlers).purge()).toBe(1)
  expect(await fixture.rows()).toMatchObject([{ aggregate_id: '1' }])
})

it('gets through any number of rows, past those that stay', async () => {
  await insertRows(2_500, 'dead_letter', 30)
  await insertRows(2_500, 'published', 30)
  await insertRows(2_500, 'pending', 29)
  await insertRows(10, 'published', 28)
  const logger = recordingLogger()
  expect(await fixture.handling(handlers, { logger }).purge()).toBe(2_510)
  expect(await countRows()).toEqual({ dead_letter: 2_500, pending: 2_500 })
  expect(logger.lines).toMatchObject([{ level: 'info', fields: { deleted: 2_510 } }])
})

it('deletes the rows of an application whose clock is ahead later, never sooner', async () => {
  await insertRows(1, 'published', 6)
  const [ahead] = await fixture.sql`delete from outbox returning id`
  await insertRows(2, 'published', 30)
  await fixture.sql`update outbox set id = ${ahead!['id']} where aggregate_id = '1'`
  expect(await fixture.handling(handlers).purge()).toBe(1)
  expect(await fixture.rows()).toMatchObject([{ aggregate_id: '1' }])
  expect(await fixture.handling(handlers, { retention: '5d' }).purge()).toBe(1)
})

it('gives dead letters a retention of their own', async () => {
  await insertRows(2, 'dead_letter', 40)
  await insertRows(3, 'dead_letter', 20)
  await insertRows(4, 'published', 2)
  const outbox = fixture.handling(handlers, { retention: '1d', deadLetterRetention: '30d' })
  expect(await outbox.purge()).toBe(6)
  expect(await countRows()).toEqual({ dead_letter: 3 })
})

it('goes by when a dead letter died, not by when it was saved', async () => {
  await insertRows(2, 'dead_letter', 40)
  await fixture.sql`update outbox set last_attempt_at = now() where aggregate_id = '1'`
  expect(await fixture.handling(handlers, { deadLetterRetention: '30d' }).purge()).toBe(1)
  expect(await fixture.rows()).toMatchObject([{ aggregate_id: '1' }])
})

it('deletes no more at once than it is asked to, and goes on where it stopped', async () => {
  await insertRows(6, 'published', 30)
  const ids = (await fixture.sql`select id from outbox order by id`).map(({ id }) => id as string)
  const purge = (after: string | null) =>
    fixture.store().purge({ status: 'published', olderThanMs: 0, limit: 2, after })
  expect(await purge(ids[1]!)).toEqual({ deleted: 2, last: ids[3] })
  expect(await purge(ids[3]!)).toEqual({ deleted: 2, last: ids[5] })
  expect(await purge(ids[5]!)).toEqual({ deleted: 0, last: null })
  expect(await purge(null)).toEqual({ deleted: 2, last: ids[1] })
})

it('says nothing in the log when nothing is old enough', async () => {
  await insertRows(1, 'published', 6)
  const logger = recordingLogger()
  expect(await fixture.handling(handlers, { logger }).purge()).toBe(0)
  expect(logger.lines).toEqual([])
})

it('deletes an event as it is recorded when retention is 0', async () => {
  const outbox = fixture.handling(
    { ...handlers, Bad: () => Promise.reject(new Error('no')) },
    { retention: 0, maxAttempts: 1 },
  )
  await outbox.start()
  const dead = nextEvent(outbox.events, 'event:dead')
  await outbox.withOutbox(async (_, emit) => {
    emit([newEvent(), newEvent({ type: 'Bad', aggregateId: 'bad' })])
  })
  await dead
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await outbox.stop()
  expect(await fixture.rows()).toMatchObject([{ aggregate_id: 'bad', status: 'dead_letter' }])
})

it('is done by one instance at a time, and waits for nobody', async () => {
  await insertRows(10, 'published', 30)
  const outbox = fixture.handling(handlers)
  await fixture.sql.begin(async (tx) => {
    // What another instance does in the middle of a batch.
    await tx`select pg_advisory_xact_lock(hashtextextended('aftercommit:"public"."outbox" purge', 0))`
    expect(await outbox.purge()).toBe(0)
  })
  await fixture.sql.begin(async (tx) => {
    await tx`select 1 from outbox where aggregate_id = '1' for update`
    expect(await outbox.purge()).toBe(9)
  })
  expect(await outbox.purge()).toBe(1)
})

it('runs by itself from start() on, again and again', async () => {
  await insertRows(5, 'published', 30)
  const outbox = fixture.handling(handlers, { cleanup: '1s' })
  await outbox.start()
  const empty = async () => (await fixture.rows()).length === 0
  await waitUntil(empty, { message: 'the first round deleted them' })
  await insertRows(5, 'published', 30)
  expect(await waitUntil(empty, { message: 'the next round deleted these' })).toBe(true)
})

it('deletes in one round whatever there is, without waiting for the next', async () => {
  await insertRows(2_100, 'published', 30)
  const outbox = fixture.handling(handlers, { cleanup: '1h' })
  await outbox.start()
  const empty = async () => (await fixture.rows()).length === 0
  expect(await waitUntil(empty, { message: 'one round deleted them all' })).toBe(true)
})

it('runs when a cron expression says so, and not before', async () => {
  await insertRows(5, 'published', 30)
  const never = fixture.handling(handlers, { cleanup: '0 0 29 2 *' })
  await never.start()
  await never.stop()
  expect(await countRows()).toEqual({ published: 5 })
  const everySecond = fixture.handling(handlers, { cleanup: '* * * * * *' })
  await everySecond.start()
  const empty = async () => (await fixture.rows()).length === 0
  expect(await waitUntil(empty, { message: 'it ran' })).toBe(true)
})

it('does not run when it is switched off', async () => {
  await insertRows(5, 'published', 30)
  for (const off of [{ cleanup: false }, { enabled: false }] as const) {
    const outbox = fixture.handling(handlers, off)
    await outbox.start()
    await outbox.stop()
  }
  expect(await countRows()).toEqual({ published: 5 })
})
