// What tests of the inbox need besides the fixture: its table, a table for effects that nothing keeps unique, and
// inboxes that are stopped when their test ends.
import { sql as raw } from 'drizzle-orm'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import type postgres from 'postgres'
import { afterEach, beforeAll } from 'vitest'
import { createInbox, type Inbox, type InboxOptions } from '../../src/inbox/inbox.ts'
import type { DrizzleDatabase } from '../../src/index.ts'
import type { Fixture } from './fixture.ts'
import { waitUntil } from './timing/wait-until.ts'

type TestOptions = Partial<InboxOptions<PostgresJsDatabase>>

/** `n` is the order of the effects where they lock each other out until COMMIT. */
const CREATE_EFFECTS = `create table effects (
  n bigint generated always as identity, event_id text, aggregate text, seq bigint, consumer text)`

export type InboxFixture = {
  readonly inbox: (options?: TestOptions) => Inbox<PostgresJsDatabase>
  /** The ids of the events whose effects are there, in order. */
  readonly effects: () => Promise<string[]>
  /** What the table remembers, as `consumer/id`. */
  readonly remembered: () => Promise<string[]>
}

export async function addEffect(
  tx: Pick<DrizzleDatabase, 'execute'>,
  id: string,
  consumer = 'billing',
): Promise<void> {
  await tx.execute(raw`insert into effects (event_id, consumer) values (${id}, ${consumer})`)
}

/** That many sessions of the database wait for others to commit, roll back, or let go of a lock. */
export async function waitForSessions(sql: postgres.Sql, count: number): Promise<void> {
  const waiting = async () => {
    const rows = await sql`select 1 from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`
    return rows.length === count
  }
  await waitUntil(waiting, { message: `${count} deliveries wait`, timeoutMs: 10_000 })
}

export function useInbox(fixture: Fixture): InboxFixture {
  const inboxes: Inbox[] = []
  beforeAll(async () => {
    await createInbox({ db: fixture.db, consumer: 'any' }).migrate()
    await fixture.sql.unsafe(CREATE_EFFECTS)
  })
  afterEach(async () => {
    await Promise.all(inboxes.splice(0).map((inbox) => inbox.stop()))
    await fixture.sql`truncate inbox, effects`
  })
  return {
    inbox(options = {}) {
      const inbox = createInbox({ db: fixture.db, consumer: 'billing', ...options })
      inboxes.push(inbox)
      return inbox
    },
    async effects() {
      const rows = await fixture.sql`select event_id from effects order by n`
      return rows.map((row) => row['event_id'] as string)
    },
    async remembered() {
      const rows =
        await fixture.sql`select consumer || '/' || event_id as key from inbox order by 1`
      return rows.map((row) => row['key'] as string)
    },
  }
}
