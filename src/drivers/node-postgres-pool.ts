// Refuses a single node-postgres client, whether it is given to us directly or through Drizzle.
import { OutboxOptionsError } from '../errors.ts'

// All statements share one connection: an outcome recorded in the background would join whatever transaction is open
// on it, and be rolled back with it.
export function refuseSingleClient(owner: string, client: unknown): void {
  if (typeof client !== 'object' || client === null || !('connectionParameters' in client)) return
  throw new OutboxOptionsError(
    `${owner} runs on a single node-postgres Client, which transactions and background work would share; use a Pool`,
  )
}
