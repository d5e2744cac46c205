// The transactions of the business, whatever the driver, and what it does with an outbox in them.
import type { SQL } from 'drizzle-orm'
import type { DrizzleDatabase, NewEvent } from '../../../src/index.ts'

/** A transaction that can nest. */
export interface Transaction extends Pick<DrizzleDatabase, 'execute'> {
  transaction(work: (tx: Transaction) => Promise<unknown>): Promise<unknown>
}

export interface Desk {
  /** Emits into the transaction. Returns the event's id. */
  readonly emit: (tx: Transaction, event: NewEvent) => string | Promise<string>
  /** Cancels in the transaction. */
  readonly cancel: (tx: Transaction, id: string) => Promise<boolean>
}

class ChangedItsMind extends Error {}

export const changeItsMind = (): never => {
  throw new ChangedItsMind()
}

export const isPlanned = (error: unknown) => error instanceof ChangedItsMind

/** Nests some work that fails in the end, and goes on without it. */
export async function failNested(
  tx: Transaction,
  work: (inner: Transaction) => Promise<unknown>,
): Promise<void> {
  const failing = tx.transaction(async (inner) => {
    await work(inner)
    changeItsMind()
  })
  await failing.catch((error: unknown) => {
    if (!isPlanned(error)) throw error
  })
}

/** The first row. postgres.js returns the rows, node-postgres an object around them. */
export async function readRow<Row>(
  tx: Pick<DrizzleDatabase, 'execute'>,
  query: SQL,
): Promise<Row | undefined> {
  const result = await tx.execute(query)
  return ((Array.isArray(result) ? result : (result as { rows: unknown[] }).rows) as Row[])[0]
}
