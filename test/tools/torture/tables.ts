// The tables of the business and of the outbox: made before a run, and waited for at its end.
import { setTimeout as delay } from 'node:timers/promises'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { createOutbox, type MigrateOptions } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { say } from '../../support/run/run-to-verdict.ts'
import { TABLES } from './business.ts'
import type { ScheduledRow, Scheduling } from './scheduled-oracle.ts'

const DRAIN_LIMIT_MS = 180_000

export async function prepareTables(url: string, options: MigrateOptions = {}): Promise<void> {
  const client = postgres(url, { max: 1, onnotice: () => {} })
  try {
    await client.unsafe(TABLES)
    const publisher = handlersPublisher({ handlers: {} })
    await createOutbox({ db: drizzle(client), publisher }).migrate(options)
    await client.unsafe(REMEMBER_PURGED)
  } finally {
    await client.end()
  }
}

/** Waits until nothing is unsent, and no transaction is left that could still commit something. */
export async function drain(url: string): Promise<void> {
  const client = postgres(url, { max: 1 })
  const deadline = performance.now() + DRAIN_LIMIT_MS
  try {
    for (;;) {
      const [row] = await client<{ left: number }[]>`
        select (select count(*) from outbox where status not in ('published', 'dead_letter'))::int
          + (select count(*) from pg_stat_activity where xact_start is not null
              and pid <> pg_backend_pid() and backend_type = 'client backend'
              and (state like 'idle in transaction%' or query not like '/* aftercommit%'))::int as left`
      if (row!.left === 0) return
      if (performance.now() > deadline) return say(`gave up waiting for ${row!.left} of them`)
      await delay(250)
    }
  } finally {
    await client.end()
  }
}

/** Workers purge old rows, and cancel some. What they take away is remembered, so that the oracle can ask for it. */
const REMEMBER_PURGED = `
  create table purged (id uuid, status text, lane bigint, deliver_at timestamptz);
  create function remember_purged() returns trigger language plpgsql as $$
    begin insert into purged values (old.id, old.status, old.lane, old.deliver_at); return null; end $$;
  create trigger remember_purged after delete on outbox
    for each row execute function remember_purged()`

export interface InTable {
  /** Neither published nor dead, and not cancelled. */
  readonly left: number
  /** Committed events that are published or dead in the table, or were when they were purged. */
  readonly recorded: number
  readonly dead: number
}

/** What the table says of the committed events, which may differ from what arrived. */
export async function readTable(url: string): Promise<InTable> {
  const client = postgres(url, { max: 1 })
  try {
    const [row] = await client<[InTable]>`
      select count(*) filter (where o.status not in ('published', 'dead_letter') and not o.cancelled)::int as left,
        count(j.event_id) filter (where o.status in ('published', 'dead_letter'))::int as recorded,
        count(*) filter (where o.status = 'dead_letter')::int as dead
      from (
        select id, status, false as cancelled from outbox
        union all
        select id, status, deliver_at is not null and status in ('scheduled', 'pending') from purged
      ) o
      left join journal j on j.event_id = o.id`
    return row
  } finally {
    await client.end()
  }
}

/** What the business has cancelled, and what the table says of scheduled events. */
export async function readScheduling(url: string): Promise<Scheduling> {
  const client = postgres(url, { max: 1 })
  const all = client`(select id, status, lane, deliver_at, false as gone from outbox
    union all select id, status, lane, deliver_at, true from purged)`
  const ids = (rows: readonly { id: string }[]) => rows.map(({ id }) => id)
  try {
    const [shared] = await client<[{ sharedLanes: number }]>`
      select coalesce(sum(events), 0)::int as "sharedLanes" from (
        select count(*) as events from ${all} o group by lane
        having count(*) > 1 and bool_or(deliver_at is not null)) lanes`
    return {
      cancels: ids(await client`select event_id as id from cancels`),
      loneCancels: ids(await client`select event_id as id from lone_cancels`),
      rows: await client<ScheduledRow[]>`
        select id, status, (extract(epoch from deliver_at) * 1000)::float8 as "dueMs", gone as "isGone"
        from ${all} o where deliver_at is not null`,
      ...shared,
    }
  } finally {
    await client.end()
  }
}
