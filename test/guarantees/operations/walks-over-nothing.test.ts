// Nothing that cannot be taken costs a claim anything: events of a topic that is out of reach, events that rest after a
// failure, events behind one that failed, events that are scheduled for later, and what was published, made due or cancelled
// while some old transaction is open. Counted in entries of indexes and rows that Postgres read, by a connection of the outbox's own.
import { performance } from 'node:perf_hooks'
import { sql } from 'drizzle-orm'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { describe, expect, it } from 'vitest'
import type { Outbox } from '../../../src/index.ts'
import { openCountedSession, runCounted } from '../../support/servers/counted-session.ts'
import { useFixture } from '../../support/fixture.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const MANY = 20_000
/** For ten events, a probe, and what the polls before have left behind. */
const FEW = 1_000
const fixture = useFixture()

interface Rows {
  readonly topic?: string
  readonly status?: string
  readonly lane?: 'each its own' | 'one'
  readonly dueInHours?: number
}

async function insert(count: number, rows: Rows = {}) {
  const { topic = 'fine', status = 'pending', lane = 'each its own', dueInHours = 0 } = rows
  await fixture.sql`
    insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers, status,
      attempts, max_attempts, available_at, deliver_at, occurred_at)
    select gen_random_uuid(), case when ${lane === 'one'} then 1 else (random() * 1e15)::bigint end, 'order', n, 'OrderCompleted', ${topic},
      to_json(n), '{}', ${status}, ${status === 'failed' ? 1 : 0}, 10,
      due.at, case when ${status === 'scheduled'} then due.at end, now()
    from generate_series(1, ${count}::int) as series(n)
    cross join lateral (select clock_timestamp() + ${dueInHours}::int * interval '1 h' as at) due order by series.n`
}

type Action = (
  outbox: Pick<Outbox<PostgresJsDatabase>, 'pollOnce' | 'stats' | 'withOutbox'>,
) => Promise<unknown>

/** What a round that delivers ten events reads, of a process that has looked at the table before. */
async function readByOneRound(): Promise<number> {
  return await readBy((outbox) => outbox.pollOnce(), 10)
}

/** Reads of all indexes, or of one, by a process that has looked at the table before. */
async function readBy(action: Action, delivers: number, index = '%'): Promise<number> {
  const session = openCountedSession(fixture)
  const sent: unknown[] = []
  const outbox = fixture.outbox({
    db: session.db,
    publisher: {
      name: 'test',
      publish: async (events) =>
        events.map((event) => {
          if (event.topic !== 'fine') {
            return { ok: false, kind: 'transient', error: new Error('away'), blames: 'topic' }
          }
          sent.push(event.id)
          const { topic, aggregateId: key } = event
          return { ok: true, topic, key, partition: null, offset: null }
        }),
    },
    batchSize: 1_000,
    maxBacklog: 1_000_000,
  })
  const circuit = { state: 'closed' }
  outbox.events.on('circuit:open', () => void (circuit.state = 'open'))
  outbox.events.on('circuit:half-open', () => void (circuit.state = 'half-open'))
  // Learns which topics there are and what is out of reach, puts off what is held, and passes what is dead.
  // Dead entries are passed by looks that come later than two seconds after the last of them was put off. Few polls, as each
  // leaves dead entries of its own, which count as long as any snapshot, such as that of autovacuum, keeps them.
  const poll = async () => {
    await insert(1)
    await outbox.pollOnce()
  }
  let [nextPoll, passed] = [0, 0]
  await waitUntil(
    async () => {
      if (performance.now() < nextPoll) return false
      nextPoll = performance.now() + 100
      await poll()
      // In that session too: what another one has read may be in the statistics later.
      const [row] = await session.db.execute(sql`
        select count(*)::int as due from outbox
        where topic = 'fine' and status in ('pending', 'failed') and available_at <= now()`)
      if (passed === 0 || row!['due'] !== 0) passed = performance.now() + 2_100
      return performance.now() >= passed
    },
    { message: 'what is held is put off', timeoutMs: 90_000 },
  )
  // The round that counts sends a probe too, if there is one to send: looking for one reads a few hundred events at most.
  await waitUntil(() => circuit.state !== 'open', { message: 'the next probe is due' })
  await insert(10)
  await session.db.execute(sql`select pg_stat_force_next_flush()`)
  const before = await countReads(index)
  sent.length = 0
  await action(outbox)
  expect(sent).toHaveLength(delivers)
  await session.end()
  return (await countReads(index)) - before
}

async function countReads(index: string): Promise<number> {
  const [row] = await fixture.sql`
    select (t.seq_tup_read + sum(i.idx_tup_read))::int as reads
    from pg_stat_user_tables t join pg_stat_user_indexes i using (relid)
    where t.relname = 'outbox' and i.indexrelname like ${index} group by t.seq_tup_read`
  return row!['reads'] as number
}

const scenes: [string, () => Promise<void>][] = [
  ['nothing but history', () => insert(MANY, { status: 'published' })],
  ['events of a topic that is out of reach', () => insert(MANY, { topic: 'away' })],
  ['events that rest after a failure', () => insert(MANY, { status: 'failed', dueInHours: 1 })],
  [
    'events behind one that failed',
    async () => {
      await insert(1, { status: 'failed', lane: 'one', dueInHours: 1 })
      await insert(MANY, { lane: 'one' })
    },
  ],
  [
    'events that are scheduled',
    async () => {
      await insert(MANY / 2, { status: 'scheduled', dueInHours: 1 })
      await insert(MANY / 2, { status: 'scheduled', dueInHours: 1, topic: 'another' })
    },
  ],
]

describe.each(['never analyzed', 'analyzed while it was empty', 'just analyzed'])(
  'in a table that was %s',
  (when) => {
    it.each(scenes)('reads no more for %s in its way', { timeout: 120_000 }, async (_, prepare) => {
      await fixture.sql`alter table outbox set (autovacuum_enabled = off)`
      if (when === 'analyzed while it was empty') await fixture.sql`vacuum analyze outbox`
      await prepare()
      if (when === 'just analyzed') await fixture.sql`vacuum analyze outbox`
      expect(await readByOneRound()).toBeLessThan(FEW)
    })
  },
)

it.each([
  ['has only read', 'select 1'],
  ['has written', 'select pg_current_xact_id()'],
])(
  'reads no more for what was published while an old transaction that %s is open',
  { timeout: 120_000 },
  async (_, statement) => {
    await fixture.sql`alter table outbox set (autovacuum_enabled = off)`
    await fixture.sql.begin('isolation level repeatable read', async (old) => {
      await old.unsafe(statement)
      await insert(MANY, { dueInHours: -1 })
      await runCounted(fixture, sql`update outbox set status = 'published'`)
      // By statistics like these, every index of unfinished events is empty, and as good as any other.
      await fixture.sql`vacuum analyze outbox`
      expect(await readByOneRound()).toBeLessThan(FEW)
      const stats: Action = async (outbox) => {
        expect((await outbox.stats()).pending).toEqual({ count: 10, exact: true })
      }
      // It reads three times what was published in the last seconds, and nothing from before.
      expect(await readBy(stats, 0, 'outbox_due_idx')).toBeLessThan(MANY / 4)
    })
  },
)

it('counts no further for what is scheduled', { timeout: 120_000 }, async () => {
  await fixture.sql`alter table outbox set (autovacuum_enabled = off)`
  await insert(MANY, { status: 'scheduled', dueInHours: 1 })
  // Counts for maxBacklog, and saves nothing.
  const count: Action = (outbox) => outbox.withOutbox(async () => {})
  expect(await readBy(count, 0)).toBeLessThan(MANY / 20)
  const stats: Action = async (outbox) => {
    const { pending, scheduled, lagMs } = await outbox.stats()
    expect(pending).toEqual({ count: 10, exact: true })
    expect(scheduled).toEqual({ count: 10_000, exact: false })
    expect(lagMs).toBeLessThan(60_000)
  }
  expect(await readBy(stats, 0, 'outbox_due_idx')).toBeLessThan(MANY / 20)
})

it.each([
  ['made due', sql`update outbox set status = 'published'`],
  ['cancelled', sql`delete from outbox`],
])(
  'reads no more for what was %s while an old transaction is open',
  { timeout: 120_000 },
  async (_, statement) => {
    await fixture.sql`alter table outbox set (autovacuum_enabled = off)`
    await fixture.sql.begin('isolation level repeatable read', async (old) => {
      await old`select pg_current_xact_id()`
      await insert(MANY, { status: 'scheduled', dueInHours: -1 })
      await runCounted(fixture, statement)
      await insert(10, { status: 'scheduled', dueInHours: 1 })
      await fixture.sql`vacuum analyze outbox`
      expect(await readByOneRound()).toBeLessThan(MANY / 20)
    })
  },
)

it('finds what an old transaction saved, however long ago, as soon as that has committed', async () => {
  const handled: unknown[] = []
  const outbox = fixture.handling({ OrderCompleted: ({ payload }) => void handled.push(payload) })
  await insert(1, { topic: 'order' })
  expect(await outbox.pollOnce()).toBe(1)
  handled.length = 0
  const opened = await fixture.sql.reserve()
  await opened`begin`
  await opened`
    insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers, max_attempts,
      available_at, occurred_at)
    values (gen_random_uuid(), 1, 'order', '1', 'OrderCompleted', 'order', '"late"', '{}', 10,
      clock_timestamp(), now())`
  // It is the newest transaction, so that no snapshot lists it. Looks pass what is dead after two seconds, and 1 more.
  for (const until = performance.now() + 5_000; performance.now() < until; ) {
    expect(await outbox.pollOnce()).toBe(0)
  }
  await opened`commit`
  opened.release()
  expect(await outbox.pollOnce()).toBe(1)
  expect(handled).toEqual(['late'])
})
