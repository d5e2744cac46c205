// Which instances run, as any of them can see: a row each, renewed while it runs, deleted when it stops.
import { randomUUID } from 'node:crypto'
import { afterEach, expect, it } from 'vitest'
import { type Instance, routerPublisher } from '../../../src/index.ts'
import { useFixture } from '../../support/fixture.ts'
import { acked, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { msBeyond, nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
afterEach(async () => {
  await fixture.sql`truncate outbox_instances`
})

const newOutbox = (options: Partial<Parameters<typeof fixture.outbox>[0]> = {}) =>
  fixture.outbox({ publisher: scriptedPublisher(acked), ...options })

it('has a row for each instance that runs, with what it publishes and how it is set', async () => {
  const publisher = routerPublisher({
    publishers: { one: scriptedPublisher(acked), two: scriptedPublisher(acked) },
    routes: { orders: 'one' },
    otherwise: 'two',
  })
  const first = newOutbox({ publisher, workerId: 'first', retention: '3d' })
  const second = newOutbox({
    workerId: 'second',
    poller: true,
    immediate: false,
    cleanup: false,
  })
  expect(await first.instances()).toEqual([])
  await first.start()
  await second.start()
  const instances = await second.instances()
  expect(instances).toMatchObject([
    {
      workerId: 'first',
      pid: process.pid,
      immediate: true,
      poller: false,
      publishers: [
        { name: 'one', topics: ['orders'] },
        { name: 'two', topics: null },
      ],
      settings: {
        retention: 3 * 86_400_000,
        threshold: 300_000,
        order: 'aggregate',
        cleanup: true,
      },
    },
    { workerId: 'second', immediate: false, poller: true, settings: { cleanup: false } },
  ])
  await first.stop()
  expect(await second.instances()).toMatchObject([{ workerId: 'second' }])
  await second.stop()
  expect(await second.instances()).toEqual([])
  await second.start()
  const [again] = await second.instances()
  expect(again!.id).not.toBe(instances[1]!.id)
})

it('renews the row while the instance runs, with what it has done and cannot reach', async () => {
  const publisher = scriptedPublisher((event) =>
    event.topic === 'away'
      ? { ok: false, kind: 'transient', error: new Error('no such topic'), blames: 'topic' }
      : acked(event),
  )
  const outbox = newOutbox({ publisher, topic: ({ aggregateType }) => aggregateType })
  await outbox.start()
  // Before the circuit opens, which brings the next beat forward.
  const [before] = await outbox.instances()
  const published = nextEvent(outbox.events, 'event:published')
  const opened = nextEvent(outbox.events, 'circuit:open')
  await outbox.withOutbox(async (_, emit) =>
    emit([newEvent(), newEvent({ aggregateType: 'away' })]),
  )
  await Promise.all([published, opened])
  const renewedAfter = ({ seenAt }: Instance) =>
    waitUntil(
      async () => {
        const [row] = await outbox.instances()
        return row!.seenAt > seenAt && row!
      },
      { message: 'the row is renewed' },
    )
  const renewed = await renewedAfter(before!)
  expect(before!.report).toMatchObject({ published: { immediate: 0, fallback: 0 }, circuits: [] })
  expect(renewed.report).toMatchObject({
    published: { immediate: 1, fallback: 0 },
    circuits: [{ topic: 'away', error: 'Error: no such topic' }],
  })
  expect(renewed.startedAt).toEqual(before!.startedAt)
  // The circuit was news, a second later, and nothing is after it. The next beat comes ten seconds after that one began,
  // which may have been well before it was recorded.
  expect(renewed.seenAt.getTime() - before!.seenAt.getTime()).toBeLessThan(9_900)
  const again = await renewedAfter(renewed)
  expect(again.seenAt.getTime() - renewed.seenAt.getTime()).toBeGreaterThanOrEqual(5_000)
})

const addKilled = (minutes: number, hasHistory = false) => fixture.sql`
    insert into outbox_instances (id, worker_id, host, pid, version, seen_at, publishers, immediate, poller, settings, report,
      history, history_at)
    values (${randomUUID()}, ${`killed ${minutes} minutes ago`}, 'host', 1, '1', now() - ${minutes} * interval '1 minute',
      '[]', true, true, '{}', '{}', ${hasHistory ? EMPTY_HISTORY : null}::text::json,
      ${hasHistory ? minutes : null} * interval '-1 minute' + now())`
const EMPTY_HISTORY = JSON.stringify({ topics: [], lastBeganMsAgo: 0, minutes: [0] })

it('forgets an instance that has not been seen for an hour, and only such', async () => {
  await addKilled(61)
  await addKilled(59)
  const outbox = newOutbox({ workerId: 'running' })
  const workers = async () => (await outbox.instances()).map(({ workerId }) => workerId)
  expect(await workers()).toEqual(['killed 59 minutes ago'])
  await outbox.start()
  expect((await workers()).toSorted()).toEqual(['killed 59 minutes ago', 'running'])
  expect(await fixture.sql`select from outbox_instances`).toHaveLength(2)
  const [killed] = await outbox.instances()
  expect(killed!.seenMsAgo).toBeGreaterThan(58 * 60_000)
})

it('does not exceed stopTimeout when the row cannot be deleted', async () => {
  const outbox = newOutbox({ stopTimeout: '1s' })
  await outbox.start()
  await fixture.sql.begin(async (tx) => {
    await tx`select from outbox_instances for update`
    // Closing has a limit of two seconds of its own.
    expect(await msBeyond(1_000, () => outbox.stop())).toBeLessThan(900)
  })
})

it('keeps what instances did for three hours after they were killed or stopped', async () => {
  await addKilled(179, true)
  await addKilled(181, true)
  const stopped = newOutbox({ workerId: 'stopped' })
  await stopped.start()
  await stopped.stop()
  const running = newOutbox()
  await running.start()
  const kept = await fixture.sql<{ worker_id: string; isListed: boolean }[]>`
    select worker_id, seen_at > now() - interval '1 hour' as "isListed" from outbox_instances order by started_at`
  expect(kept.map((row) => row.worker_id)).toEqual(
    expect.arrayContaining(['killed 179 minutes ago', 'stopped']),
  )
  expect(kept).toHaveLength(3)
  expect(await running.instances()).toHaveLength(1)
  await running.stop()
})
