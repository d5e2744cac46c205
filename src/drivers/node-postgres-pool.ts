// What is refused of a node-postgres client, be it ours to use or Drizzle's.
import { OutboxOptionsError } from '../errors.ts'

// One connection for everything: an outcome recorded in the background would become part of whatever
// transaction is open on it, and be undone with it.
export function refuseSingleClient(owner: string, client: unknown): void {
  if (typeof client !== 'object' || client === null || !('connectionParameters' in client)) return
  throw new OutboxOptionsError(
    `${owner} runs on a single node-postgres Client, which transactions and the background would share; give it a Pool`,
  )
}
