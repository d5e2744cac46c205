// A database from a connection string, for the CLI, which has no client of the application's. It takes whichever client is
// installed: postgres.js, or else node-postgres. Nothing is prepared, so poolers that share connections are fine.
import { OutboxOptionsError } from '../errors.ts'
import type { Database } from './driver.ts'

export interface OpenedDatabase {
  readonly db: Database<unknown>
  close(): Promise<void>
}

/** A command reads a few things side by side and never needs more. */
const CONNECTIONS = 4
const CONNECT_TIMEOUT_S = 10

/** `name` is what `pg_stat_activity` shows. Connects with the first statement. */
export async function openUrl(url: string, name: string): Promise<OpenedDatabase> {
  const opened = (await openPostgresJs(url, name)) ?? (await openNodePostgres(url, name))
  if (opened) return opened
  throw new OutboxOptionsError(
    "neither 'postgres' nor 'pg' is installed, so the database cannot be opened; run npm install postgres (or pg) in this project",
  )
}

async function openPostgresJs(url: string, name: string): Promise<OpenedDatabase | null> {
  const client = await ifInstalled(() => import('postgres'))
  if (!client) return null
  const { postgresJs } = await import('./postgres-js.ts')
  const sql = client.default(url, {
    max: CONNECTIONS,
    prepare: false,
    fetch_types: false,
    connect_timeout: CONNECT_TIMEOUT_S,
    connection: { application_name: name },
    onnotice: () => {},
  })
  return { db: postgresJs(sql), close: () => sql.end({ timeout: 1 }) }
}

async function openNodePostgres(url: string, name: string): Promise<OpenedDatabase | null> {
  const client = await ifInstalled(() => import('pg'))
  if (!client) return null
  const { nodePostgres } = await import('./node-postgres.ts')
  const pool = new client.default.Pool({
    connectionString: url,
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_S * 1_000,
    application_name: name,
  })
  // The statement that needs the connection fails by itself.
  pool.on('error', () => {})
  return { db: nodePostgres(pool), close: () => pool.end() }
}

async function ifInstalled<T>(load: () => Promise<T>): Promise<T | null> {
  try {
    return await load()
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_MODULE_NOT_FOUND') return null
    throw error
  }
}
