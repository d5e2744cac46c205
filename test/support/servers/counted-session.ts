// A session of its own, for what Postgres counts: a session adds what it has read to the statistics now and then, and the rest
// when it ends. So the figures are complete once its server process is gone, and not before. Up to Postgres 14 a collector
// writes them to a file, so the file has to be a later one.
import type { SQL } from 'drizzle-orm'
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import type postgres from 'postgres'
import { uniqueName } from '../doubles/unique-name.ts'
import { waitUntil } from '../timing/wait-until.ts'
import { directUrl, openClient } from './database.ts'

export type CountedSession = {
  readonly db: PostgresJsDatabase
  /** Resolves when all that it has read is in the statistics. */
  end(): Promise<void>
}

type Database = { readonly url: string; readonly sql: postgres.Sql }

/** Past any PgBouncer, whose sessions go on when a client ends. */
export function openCountedSession({ url, sql: watching }: Database, max = 1): CountedSession {
  const name = uniqueName('counted')
  const client = openClient(directUrl(url), { max, connection: { application_name: name } })
  const isGone = async () => {
    const rows = await watching`select from pg_stat_activity where application_name = ${name}`
    return rows.length === 0
  }
  const isCollected = async (since: string) => {
    const [row] = await watching`
      select current_setting('server_version_num')::int >= 150000
        or pg_stat_get_snapshot_timestamp() > ${since}::text::timestamptz as collected`
    return row!['collected'] === true
  }
  return {
    db: drizzle(client),
    async end() {
      await client.end()
      await waitUntil(isGone, { message: 'the session is gone' })
      const [row] = await watching`select clock_timestamp()::text as now`
      const message = 'the collector has written what it read'
      await waitUntil(() => isCollected(row!['now'] as string), { message })
    },
  }
}

/** Runs a statement in a session that is over, so that what it has read counts for nothing that follows. */
export async function runCounted(database: Database, statement: SQL): Promise<void> {
  const session = openCountedSession(database)
  await session.db.execute(statement)
  await session.end()
}
