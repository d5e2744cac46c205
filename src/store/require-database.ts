// What may stand in the option `db`, of the outbox and of the inbox.
import { OutboxOptionsError } from '../errors.ts'
import { requireMethods } from '../validate.ts'

export function requireDatabase(db: unknown): void {
  requireMethods(
    'db',
    db,
    ['execute', 'transaction'],
    'a Drizzle Postgres database: drizzle(client), not the client itself',
  )
  refuseSingleClient(db as object)
}

// One connection for everything: what one transaction does, and what is recorded in the background, would become
// part of whatever other transaction is open on it, and be undone with it.
function refuseSingleClient(db: object): void {
  const { $client } = db as { $client?: object }
  if (!$client || !('connectionParameters' in $client)) return
  throw new OutboxOptionsError(
    'db runs on a single node-postgres Client, which transactions and the background would share; give Drizzle a Pool',
  )
}
