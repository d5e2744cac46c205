// What was put off behind another event of its lane goes out soon after that one, also when claims run side by side and
// when the process that waited for it stops.
import { expect, it } from 'vitest'
import { resolveOptions } from '../../../src/options/options.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { postgresStore } from '../../../src/store/outbox/postgres.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { useFixture } from '../../support/fixture.ts'
import { blockedHandler } from '../../support/timing/blocked-handler.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
const lease = { token: '00000000-0000-4000-8000-000000000001', workerId: 'test', ms: 60_000 }

async function insert(topic: string, status = 'pending') {
  await fixture.sql`
    insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers, status, max_attempts,
      available_at, occurred_at)
    values (gen_random_uuid(), 7, 'order', '1', 'OrderCompleted', ${topic}, '1', '{}', ${status}, 10,
      clock_timestamp() - interval '1 s', now())`
}

/** The second claim runs while the transaction of the first is open, so that neither sees what the other writes. */
async function claimSideBySide(first: string, second: string) {
  const held = await fixture.sql.reserve()
  const options = resolveOptions({
    db: fixture.db,
    publisher: handlersPublisher({ handlers: {} }),
  })
  const query = ({ text, values }: { text: string; values: never[] }) => held.unsafe(text, values)
  const other = postgresStore({ query } as never, options)
  await held`begin`
  const claimed = await other.claim({ lease, limit: 1, from: { topics: [first] } })
  const beside = await fixture.store().claim({ lease, limit: 1, from: { topics: [second] } })
  await held`commit`
  held.release()
  return [claimed, beside].map(({ events, waitingLanes }) => ({
    events: events.length,
    waitingLanes,
  }))
}

it('is known to the claim that takes what it waits for, if that has another topic', async () => {
  await insert('first')
  await insert('second')
  expect(await claimSideBySide('first', 'second')).toEqual([
    { events: 1, waitingLanes: [7] },
    { events: 0, waitingLanes: [] },
  ])
})

it('is known to the claim that puts it off behind one that has rested and is being taken', async () => {
  await insert('orders', 'failed')
  await insert('orders')
  expect(await claimSideBySide('orders', 'orders')).toEqual([
    { events: 1, waitingLanes: [] },
    { events: 0, waitingLanes: [7] },
  ])
})

it('goes out when the process that waited for it has stopped', async () => {
  const handled: string[] = []
  const { handler, started, release } = blockedHandler()
  const handlers = {
    First: handler,
    Second: () => void handled.push('second'),
  }
  const sending = fixture.handling(handlers, { pollInterval: '100ms', poller: true })
  await sending.start()
  await sending.withOutbox((_, emit) => emit(newEvent({ type: 'First', aggregateId: '1' })))
  await started
  const waiting = fixture.handling(handlers, { pollInterval: '100ms', poller: true })
  await waiting.start()
  await waiting.withOutbox((_, emit) => emit(newEvent({ type: 'Second', aggregateId: '1' })))
  await waitUntil(async () => (await fixture.rows()).some((row) => !row.available && !row.leased), {
    message: 'the second event is put off',
  })
  await waiting.stop()
  release()
  await waitUntil(() => handled.length === 1, { message: 'the second event is handled' })
  expect(handled).toEqual(['second'])
})
