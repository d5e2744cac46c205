// `aftercommit reroute`: events that wait for a mistyped topic go to the right one.
import { expect, it } from 'vitest'
import { routerPublisher } from '../../../src/index.ts'
import { readCli, runCli } from '../../support/built-cli.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, failedAs, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { useFixture } from '../../support/fixture.ts'
import { seed } from '../../support/seeded-events.ts'
import { seedInstance } from '../../support/seeded-instances.ts'

const fixture = useFixture({ partitioned: false })
const here = () => ({ url: fixture.url })
const read = <T>(...args: string[]) => readCli<T>(args, here())
const run = (...args: string[]) => runCli(args, here())

const topics = async () => {
  const rows = await fixture.sql<{ topic: string }[]>`select topic from outbox order by seq`
  return rows.map(({ topic }) => topic)
}

it('asks, and moves what is unsent and held by no process, due now', async () => {
  await seed(fixture.sql, [
    { topic: 'odrers', dueInSeconds: -600 },
    { topic: 'odrers', status: 'failed', attempts: 2, dueInSeconds: 600 },
    { topic: 'odrers', dueInSeconds: 600 },
    { topic: 'odrers', dueInSeconds: -5 },
    { topic: 'odrers', status: 'dead_letter' },
    { topic: 'odrers', status: 'published' },
    { topic: 'carts' },
  ])
  // The third is held; the lease of the fourth is over.
  await fixture.sql`update outbox set lease_token = gen_random_uuid() where seq in (
    select seq from outbox order by seq offset 2 limit 2)`
  const refused = await run('reroute', 'odrers', 'carts')
  expect(refused).toMatchObject({ code: 2, stdout: '' })
  expect(refused.stderr).toContain(
    "this would move 4 events from the topic 'odrers' to 'carts'; nothing was changed; pass --yes",
  )
  expect(await read('reroute', 'odrers', 'orders', '--yes')).toEqual({ moved: 3, held: 1 })
  expect(await topics()).toEqual([
    'orders',
    'orders',
    'odrers',
    'orders',
    'odrers',
    'odrers',
    'carts',
  ])
  const moved = await fixture.sql`select status, attempts,
    available_at between now() - interval '1 minute' and now() as is_due from outbox where topic = 'orders' order by seq`
  expect(moved).toMatchObject([
    { status: 'pending', is_due: true },
    { status: 'failed', attempts: 2, is_due: true },
    { status: 'pending', is_due: true },
  ])
  const again = await run('reroute', 'odrers', 'orders', '--yes')
  expect(again).toMatchObject({ code: 0, stdout: '0 moved\n' })
  expect(again.stderr).toContain('one event was left')
  await fixture.sql`update outbox set available_at = now() where lease_token is not null`
  expect(await read('reroute', 'odrers', 'orders', '--yes')).toEqual({ moved: 1, held: 0 })
  expect((await run('reroute', 'odrers', 'orders')).stderr).toContain('nothing matched')
  expect(await run('reroute', 'orders', 'orders')).toMatchObject({ code: 2 })
})

it('says in its question, and with --yes in a note, that the new topic may be mistyped', async () => {
  await seed(fixture.sql, [{ topic: 'odrers' }, { topic: 'carts', status: 'published' }])
  const refused = await run('reroute', 'odrers', 'ordres')
  expect(refused).toMatchObject({ code: 2, stdout: '' })
  expect(refused.stderr).toContain(
    "to 'ordres', a topic that no waiting or recent event is for and no running instance names; nothing was changed",
  )
  expect(await run('reroute', 'odrers', 'ordres', '--yes')).toEqual({
    code: 0,
    stdout: '1 moved\n',
    stderr:
      "no waiting or recent event is for the topic 'ordres', and no running instance names it; check the spelling\n",
  })
  await seedInstance(fixture.sql, { topics: ['orders'] })
  try {
    for (const to of ['carts', 'orders']) {
      const [from] = await topics()
      expect(await run('reroute', from!, to, '--yes')).toMatchObject({ code: 0, stderr: '' })
    }
  } finally {
    await fixture.sql`truncate outbox_instances`
  }
})

it('waits a moment for an event that an instance holds, as one does that probes the topic', async () => {
  await seed(fixture.sql, [{ topic: 'odrers', dueInSeconds: 1 }])
  await fixture.sql`update outbox set lease_token = gen_random_uuid()`
  expect(await read('reroute', 'odrers', 'orders', '--yes')).toEqual({ moved: 1, held: 0 })
})

it('moves more than one page, also where many events are due at the same time', async () => {
  await fixture.sql.unsafe(`insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers,
      status, max_attempts, available_at, occurred_at)
    select gen_random_uuid(), n, 'order', n, 'OrderPlaced', 'odrers', '1', '{}', 'pending', 10,
      now() - (n / 1500) * interval '1 s', now() from generate_series(1, 3500) n`)
  expect(await read('reroute', 'odrers', 'orders', '--yes')).toEqual({ moved: 3_500, held: 0 })
})

it('is what a running instance sends next, in order', async () => {
  const sent: string[] = []
  const publisher = scriptedPublisher((event) => {
    if (event.topic === 'odrers') return failedAs('transient', 'topic')
    sent.push(`${event.topic} ${event.aggregateId} ${event.id}`)
    return acked(event)
  })
  const lines: object[] = []
  const log = (fields: object, message: string) => void lines.push({ ...fields, message })
  const outbox = fixture.outbox({
    publisher,
    poller: true,
    pollInterval: '50ms',
    topic: 'odrers',
    logger: { debug: () => {}, info: log, warn: () => {}, error: () => {} },
  })
  await outbox.start()
  const ids: string[] = []
  for (let n = 0; n < 5; n += 1) {
    await outbox.withOutbox(async (_, emit) => {
      ids.push(emit(newEvent({ aggregateId: 'one' })))
    })
  }
  await expect
    .poll(
      async () => {
        await outbox.reroute('odrers', 'orders', { by: 'ada' })
        return sent.length
      },
      { timeout: 30_000 },
    )
    .toBe(5)
  expect(sent).toEqual(ids.map((id) => `orders one ${id}`))
  expect(lines).toContainEqual(
    expect.objectContaining({ from: 'odrers', to: 'orders', by: 'ada', moved: expect.any(Number) }),
  )
  await expect(outbox.reroute('orders', 'orders')).rejects.toThrow('two topics')
})

it('is the remedy that doctor names for a topic out of reach', async () => {
  const circuits = [{ publisher: 'kafka', topic: 'odrers', forMs: 9_000, error: 'no such topic' }]
  await seedInstance(fixture.sql, { report: { circuits } })
  await seed(fixture.sql, [{ topic: 'odrers' }])
  expect((await run('doctor')).stdout).toContain("aftercommit reroute 'odrers' <topic>")
  // As the page calls it.
  const moved = await run('move', 'odrers', 'orders', '--yes')
  expect(moved.stderr).toContain("instances still report 'odrers' as out of reach; nothing waits")
})

it('refuses a topic without a publisher, where the publishers are known', async () => {
  const outbox = fixture.outbox({
    publisher: routerPublisher({
      publishers: { broker: scriptedPublisher(acked) },
      routes: { orders: 'broker' },
    }),
  })
  await expect(outbox.reroute('ordres', 'oders')).rejects.toMatchObject({
    code: 'OPTIONS_INVALID',
    message: expect.stringContaining("'oders', which has no publisher"),
  })
})
