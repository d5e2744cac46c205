// A backlog drains whatever the database believes about the table. Statistics come from a quiet time, when
// next to nothing was pending, and a long history keeps them from being renewed when a backlog builds up.
import { expect, it } from 'vitest'
import { useFixture, WATCHABLE } from '../support/fixture.ts'

const fixture = useFixture()
const BACKLOG = 20_000

async function insert(count: number, status: 'pending' | 'published') {
  await fixture.sql`
    insert into outbox (id, aggregate_type, aggregate_id, event_type, topic, payload, headers,
      max_attempts, available_at, occurred_at, status)
    select gen_random_uuid(), 'order', n % 500, 'OrderCompleted', 'orders', to_json(n), '{}', 10,
      now(), now(), ${status}
    from generate_series(1, ${count}::int) n order by n`
}

it('drains a backlog that the statistics know nothing of', async () => {
  await fixture.sql`alter table outbox set (autovacuum_enabled = false)`
  await insert(50_000, 'published')
  await fixture.sql`vacuum analyze outbox`
  await insert(BACKLOG, 'pending')
  // A claim that compares what it takes with the whole backlog outlasts this lease and gets nowhere.
  const outbox = fixture.handling({ OrderCompleted: () => {} }, { ...WATCHABLE, batchSize: 1_000 })
  const claimed: number[] = []
  do claimed.push(await outbox.pollOnce())
  while (claimed.at(-1)! > 0)
  expect(claimed).toEqual([...Array<number>(BACKLOG / 1_000).fill(1_000), 0])
})
