// A cancellation and the fallback want the same row at the same moment, on two connections: exactly one of them has it. Locks
// decide the race here, not time: the statement that comes first has written the row and waits before COMMIT, until the other one
// is seen to wait for it, or to pass it.
import { expect, it } from 'vitest'
import type { AnyDatabase, Outbox } from '../../../src/index.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { SERVED_DRIVERS } from '../../support/drivers.ts'
import { describeEach, type Fixture } from '../../support/fixture.ts'
import { closeGate } from '../../support/timing/gate.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const failure = new Error('the business said no')

/** By what a statement of the fallback changes in the row. */
const STATEMENTS = {
  claim: 'old.worker_id is distinct from new.worker_id',
  'become due': `old.status = 'scheduled' and new.status = 'pending'`,
}

describeEach(SERVED_DRIVERS, (fixture) => {
  const { begin } = fixture.driver
  const cancellations = [
    ['alone', (outbox: Outbox, id: string) => outbox.scheduled.cancel(id)],
    [
      'in a unit of work',
      (outbox: Outbox, id: string) => outbox.withOutbox(() => outbox.scheduled.cancel(id)),
    ],
    [
      'in a transaction of its own',
      (outbox: Outbox, id: string) =>
        begin(fixture.db, async (tx) => await outbox.scheduled.cancelIn(tx, id)),
    ],
  ] as const

  it.each(cancellations)(
    'belongs to the claim that comes first: a cancellation %s waits for it and returns false',
    async (_, cancel) => {
      const { outbox, sent, id } = await scheduleOne(fixture)
      const poll = () => outbox.pollOnce()
      const cancelIt = () => cancel(outbox, id)
      expect(await raceFor('claim', poll, cancelIt, fixture)).toEqual([1, false])
      expect(sent).toEqual([id])
      expect(await fixture.rows()).toMatchObject([{ id, status: 'published' }])
    },
  )

  it.each(cancellations)(
    'belongs to a cancellation %s that waits while it becomes due, and never goes out',
    async (_, cancel) => {
      const { outbox, sent, id } = await scheduleOne(fixture)
      const look = () => fixture.store().dueTopics()
      const cancelIt = () => cancel(outbox, id)
      expect((await raceFor('become due', look, cancelIt, fixture))[1]).toBe(true)
      expect(await outbox.pollOnce()).toBe(0)
      expect(sent).toEqual([])
      expect(await fixture.rows()).toEqual([])
    },
  )

  it.each([
    ['commits, before it was made due', false, true],
    ['rolls back, before it was made due', false, false],
    ['commits, when it was due', true, true],
    ['rolls back, when it was due', true, false],
  ])(
    'belongs to the cancellation that comes first, which no poll waits for: it %s',
    async (_, isDue, commits) => {
      const { outbox, sent, id } = await scheduleOne(fixture)
      if (isDue) await fixture.store().dueTopics()
      const work = begin(fixture.db, async (tx) => {
        expect(await outbox.scheduled.cancelIn(tx, id)).toBe(true)
        // If it waited for the row, it would wait for this transaction, which waits for it.
        expect(await outbox.pollOnce()).toBe(0)
        if (!commits) throw failure
      })
      expect(await work.catch((error: unknown) => error)).toBe(commits ? undefined : failure)
      expect(await outbox.pollOnce()).toBe(commits ? 0 : 1)
      expect(sent).toEqual(commits ? [] : [id])
      expect(await outbox.scheduled.cancel(id)).toBe(false)
    },
  )
})

async function scheduleOne(fixture: Fixture<AnyDatabase>) {
  const sent: string[] = []
  const publisher = scriptedPublisher((event) => {
    sent.push(event.id)
    return acked(event)
  })
  const outbox: Outbox = fixture.outbox({ publisher })
  const event = newEvent({ deliverAt: new Date('2020-01-01T00:00:00Z') })
  return { outbox, sent, id: await outbox.withOutbox(async (_, emit) => emit(event)) }
}

/** The first one writes the row by this statement, and waits with COMMIT until the second one waits for the row. */
async function raceFor<First, Second>(
  statement: keyof typeof STATEMENTS,
  first: () => Promise<First>,
  second: () => Promise<Second>,
  fixture: Fixture<AnyDatabase>,
): Promise<[First, Second]> {
  const gate = await closeGate(fixture.sql)
  await fixture.sql.unsafe(`
    drop trigger if exists hold_up on outbox;
    create constraint trigger hold_up after update on outbox deferrable initially deferred
      for each row when (${STATEMENTS[statement]}) execute function wait_at_gate()`)
  const racing: [Promise<First>?, Promise<Second>?] = []
  try {
    racing[0] = first()
    await gate.waiting(1)
    racing[1] = second()
    await waitsForRow(fixture)
  } finally {
    await gate.open()
  }
  return [await racing[0], await racing[1]]
}

async function waitsForRow({ sql }: Fixture<AnyDatabase>): Promise<void> {
  const isWaiting = async () =>
    (
      await sql`select from pg_locks join pg_stat_activity using (pid)
        where datname = current_database() and not granted and locktype in ('transactionid', 'tuple')`
    ).length > 0
  await waitUntil(isWaiting, { message: 'the cancellation waits for the row' })
}
