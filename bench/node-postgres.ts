// What contenders on node-postgres have in common: a pool, and the business transaction by hand.
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres'
import { Pool, type PoolClient } from 'pg'
import { CREATE_ORDERS, orderValues, PLACE_ORDER } from './business.ts'
import type { BenchEvent, Stage } from './contender.ts'

export async function openPool({ databaseUrl, poolSize }: Stage) {
  const pool = new Pool({ connectionString: databaseUrl, max: poolSize })
  await pool.query(CREATE_ORDERS)
  return pool
}

const databases = new WeakMap<PoolClient, NodePgDatabase>()

/** Made once for each connection: to make it for each transaction would be a cost of ours, not of its user. */
export function drizzleOn(client: PoolClient): NodePgDatabase {
  const known = databases.get(client)
  if (known) return known
  const made = drizzle(client)
  databases.set(client, made)
  return made
}

/** `save` writes the events, in the transaction of the order. */
export async function placeOrder(
  pool: Pool,
  events: readonly BenchEvent[],
  save: (client: PoolClient) => Promise<void>,
): Promise<void> {
  await inTransaction(pool, async (client) => {
    await client.query(PLACE_ORDER, orderValues(events))
    await save(client)
  })
}

export async function inTransaction(
  pool: Pool,
  work: (client: PoolClient) => Promise<void>,
): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await work(client)
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}
