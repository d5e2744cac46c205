// A database of its own for each test file, on the Postgres that the whole run shares.
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { inject } from 'vitest'
import { uniqueName } from '../doubles/unique-name.ts'

export type TestDatabase = {
  readonly url: string
  readonly name: string
  /** Disconnects whoever is left and drops it. */
  drop(): Promise<void>
}

export type TestConnection = {
  /** For raw SQL: a client that Drizzle has not touched, since drizzle() replaces its parsers. */
  readonly client: postgres.Sql
  readonly db: PostgresJsDatabase & { $client: postgres.Sql }
  close(): Promise<void>
}

export type ConnectionOptions = postgres.Options<Record<string, postgres.PostgresType>>

/** The same database past any PgBouncer, for tests of the connections themselves. */
export function directUrl(url: string): string {
  const direct = new URL(inject('directDatabaseUrl'))
  direct.pathname = new URL(url).pathname
  return direct.href
}

export async function createDatabase(): Promise<TestDatabase> {
  const server = inject('directDatabaseUrl')
  const name = uniqueName('test')
  await runOn(server, `create database "${name}"`)
  const url = new URL(inject('databaseUrl'))
  url.pathname = `/${name}`
  return {
    url: url.href,
    name,
    drop: () => runOn(server, `drop database if exists "${name}" with (force)`),
  }
}

export function connect(url: string, options: ConnectionOptions = {}): TestConnection {
  const client = openClient(url, options)
  const db = drizzle(openClient(url, options))
  return {
    client,
    db,
    async close() {
      // Without grace: postgres.js would wait in vain for a connection cut inside a transaction.
      await Promise.all([client.end({ timeout: 0 }), db.$client.end({ timeout: 0 })])
    },
  }
}

export function openClient(url: string, options: ConnectionOptions = {}): postgres.Sql {
  return postgres(url, { onnotice: () => {}, ...options })
}

async function runOn(url: string, statement: string): Promise<void> {
  const client = openClient(url, { max: 1 })
  try {
    await client.unsafe(statement)
  } finally {
    await client.end()
  }
}
