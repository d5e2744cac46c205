// A backlog drains whatever the database believes about the table. Statistics come from a quiet time, when
// next to nothing was pending, and a long history keeps them from being renewed when a backlog builds up.
import { beforeAll, expect, it } from 'vitest'
import { useFixture, WATCHABLE } from '../../support/fixture.ts'

const fixture = useFixture()
beforeAll(async () => {
  await fixture.sql`alter table outbox set (autovacuum_enabled = false)`
})

async function insert(count: number, status: 'pending' | 'published') {
  await fixture.sql`
    insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers,
      max_attempts, available_at, occurred_at, status)
    select gen_random_uuid(), n % 500, 'order', n % 500, 'OrderCompleted', 'orders', to_json(n), '{}', 10,
      now() - interval '1 h' + n * interval '1 ms', now(), ${status}
    from generate_series(1, ${count}::int) n order by n`
}

/** Whoever reads the whole backlog, or even once for each event, outlasts this lease and gets nowhere. */
const drainer = (batchSize: number) =>
  fixture.handling({ OrderCompleted: () => {} }, { ...WATCHABLE, batchSize })

it('takes from a deep backlog in a table without statistics', async () => {
  await insert(100_000, 'pending')
  const outbox = drainer(100)
  for (const _ of [1, 2, 3]) expect(await outbox.pollOnce()).toBe(100)
})

it('takes from a deep backlog that the statistics know nothing of', async () => {
  await insert(200_000, 'published')
  await fixture.sql`vacuum analyze outbox`
  await insert(100_000, 'pending')
  const outbox = drainer(100)
  for (const _ of [1, 2, 3]) expect(await outbox.pollOnce()).toBe(100)
})

it('drains a backlog that the statistics know nothing of', async () => {
  await insert(50_000, 'published')
  await fixture.sql`vacuum analyze outbox`
  await insert(20_000, 'pending')
  const outbox = drainer(1_000)
  const claimed: number[] = []
  do claimed.push(await outbox.pollOnce())
  while (claimed.at(-1)! > 0)
  expect(claimed).toEqual([...Array<number>(20).fill(1_000), 0])
})
