// What a consumer has handled is remembered for its retention, by the database's clock; each consumer's rows are its
// own business.
import { expect, it } from 'vitest'
import { useFixture } from '../../support/fixture.ts'
import { useInbox } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
const { inbox: create, remembered } = useInbox(fixture)

async function insertRows(count: number, days: number, consumer = 'billing') {
  await fixture.sql`
    insert into inbox (consumer, event_id, handled_at)
    select ${consumer}, ${`${days}d-`} || n, now() - ${days}::int * interval '1 day'
    from generate_series(1, ${count}::int) n`
}

const isEmpty = async () => (await remembered()).length === 0

/** Time in which an inbox that cleans up every second does so more than once, told by another one. */
async function letRoundsPass(): Promise<void> {
  await using clock = create({ consumer: 'clock', cleanup: '1s' })
  await clock.start()
  for (let round = 1; round <= 4; round += 1) {
    await insertRows(1, 30, 'clock')
    const gone = async () => !(await remembered()).includes('clock/30d-1')
    await waitUntil(gone, { message: 'the clock ticks' })
  }
}

it('forgets an event after its retention, and handles it again if it is delivered then', async () => {
  const inbox = create({ retention: '7d' })
  await inbox.once({ id: 'e1' }, () => {})
  await inbox.once({ id: 'e2' }, () => {})
  await fixture.sql`update inbox set handled_at = now() - interval '8 days' where event_id = 'e1'`
  await fixture.sql`update inbox set handled_at = now() - interval '6 days' where event_id = 'e2'`
  expect(await inbox.purge()).toBe(1)
  expect(await inbox.once({ id: 'e1' }, () => {})).toMatchObject({ outcome: 'handled' })
  expect(await inbox.once({ id: 'e2' }, () => {})).toEqual({ outcome: 'duplicate' })
})

it('forgets the order of an aggregate with its events', async () => {
  const inbox = create({ order: 'aggregate' })
  const event = { aggregateType: 'order', aggregateId: 'a' }
  await inbox.once({ ...event, id: 'e2', seq: 2 }, () => {})
  expect(await inbox.once({ ...event, id: 'e1', seq: 1 }, () => {})).toEqual({ outcome: 'late' })
  await fixture.sql`update inbox set handled_at = now() - interval '8 days'`
  expect(await inbox.purge()).toBe(1)
  const again = await inbox.once({ ...event, id: 'e1', seq: 1 }, () => {})
  expect(again).toMatchObject({ outcome: 'handled' })
})

it('leaves the rows of other consumers to their own retention', async () => {
  await insertRows(2, 20, 'billing')
  await insertRows(3, 20, 'mail')
  expect(await create({ consumer: 'mail', retention: '30d' }).purge()).toBe(0)
  expect(await create({ consumer: 'billing', retention: '10d' }).purge()).toBe(2)
  expect(await create({ consumer: 'mail', retention: '10d' }).purge()).toBe(3)
})

it('gets through any number of rows in batches, and tells how many', async () => {
  await insertRows(2_500, 30)
  await insertRows(10, 6)
  const logger = recordingLogger()
  expect(await create({ logger }).purge()).toBe(2_500)
  expect(await remembered()).toHaveLength(10)
  expect(logger.lines).toMatchObject([{ level: 'info', fields: { deleted: 2_500 } }])
})

it('is done by one instance at a time, and waits for nobody', async () => {
  await insertRows(10, 30)
  const inbox = create()
  await fixture.sql.begin(async (tx) => {
    // What another instance does in the middle of a batch.
    await tx`select pg_advisory_xact_lock(
      hashtextextended('aftercommit:"public"."inbox" purge billing', 0))`
    expect(await inbox.purge()).toBe(0)
  })
  await fixture.sql.begin(async (tx) => {
    await tx`select 1 from inbox where event_id = '30d-1' for update`
    expect(await inbox.purge()).toBe(9)
  })
  expect(await inbox.purge()).toBe(1)
})

it('runs by itself from start() to stop(), again and again', async () => {
  const inbox = create({ cleanup: '1s' })
  await insertRows(5, 30)
  await Promise.all([inbox.start(), inbox.start()])
  await waitUntil(isEmpty, { message: 'the first round deleted them' })
  await insertRows(5, 30)
  await waitUntil(isEmpty, { message: 'the next round deleted these' })
  await Promise.all([inbox.stop(), inbox.stop()])
  await insertRows(5, 30)
  await letRoundsPass()
  expect(await inbox.once({ id: 'e1' }, () => {})).toMatchObject({ outcome: 'handled' })
  expect(await remembered()).toHaveLength(6)
  await inbox.start()
  const cleaned = async () => (await remembered()).length === 1
  expect(await waitUntil(cleaned, { message: 'it cleans up after a second start' })).toBe(true)
})

it('is over when its scope is', async () => {
  {
    await using inbox = create({ cleanup: '1s' })
    await inbox.start()
  }
  await insertRows(1, 30)
  await letRoundsPass()
  expect(await remembered()).toEqual(['billing/30d-1'])
})

it('does not run when it is switched off', async () => {
  await insertRows(5, 30)
  const inbox = create({ cleanup: false })
  await inbox.start()
  await inbox.stop()
  expect(await remembered()).toHaveLength(5)
})

it('finds old rows by an index, in a table of any size', async () => {
  await insertRows(3_000, 1)
  await insertRows(3_000, 1, 'mail')
  await fixture.sql`analyze inbox`
  const plan = await fixture.sql`explain select 1 from inbox where consumer = 'billing'
    and handled_at < now() - interval '7 days' order by handled_at limit 1000`
  const text = plan.map((line) => line['QUERY PLAN'] as string).join('\n')
  expect(text).toContain('inbox_handled_idx')
  expect(text).not.toMatch(/Seq Scan|Sort/)
})
