// The transactions that enclose the running code, from the innermost outwards: ours, and those that the application
// began where we can see it. All outboxes and inboxes share one storage: each further one would slow every promise of the
// process, and could not see the others.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Database, Marked } from '../drivers/driver.ts'
import { OutboxError } from '../errors.ts'

export interface Surrounding {
  readonly kind: 'withOutbox()' | 'once()' | 'a transaction of your own'
  /** The outbox or inbox that opened it. null: the application. */
  readonly owner: object | null
  /** The client whose connections it runs on. */
  readonly client: unknown
  readonly outer: Surrounding | undefined
  /** Whether it has ended. Timers and queues created inside a transaction still carry it after its end. */
  readonly isOver: () => boolean
}

const storage = new AsyncLocalStorage<Surrounding>()

/** What encloses a new one. Ended ones are left out; otherwise a chain of timers would grow a chain of surroundings. */
export function enclosing(): Surrounding | undefined {
  return innermost((one) => !one.isOver())
}

export function runInside<T>(one: Surrounding, work: () => T): T {
  return storage.run(one, work)
}

/** Runs the work in a surrounding that ends with it. */
export async function runSurrounded<T>(
  about: Pick<Surrounding, 'kind' | 'owner' | 'client'>,
  work: () => Promise<T>,
): Promise<T> {
  let over = false
  try {
    return await storage.run({ ...about, outer: enclosing(), isOver: () => over }, work)
  } finally {
    over = true
  }
}

/** From now on, the transactions that the application begins on its own handle are surroundings too. */
export function markTransactions(db: Database<unknown>): void {
  const { client } = db
  db.mark((): Marked => {
    let over = false
    const about = { kind: 'a transaction of your own', owner: null, client } as const
    const one: Surrounding = { ...about, outer: enclosing(), isOver: () => over }
    return {
      run: (work) => storage.run(one, work),
      end: () => (over = true),
    }
  })
}

/** The innermost surrounding that the owner opened. */
export function innermostOf(owner: object): Surrounding | undefined {
  return innermost((one) => one.owner === owner)
}

/** The innermost transaction that is open on the client. */
export function openOn(client: unknown): Surrounding | undefined {
  return innermost((one) => one.client === client && !one.isOver())
}

export function innermost(isIt: (one: Surrounding) => boolean): Surrounding | undefined {
  let one = storage.getStore()
  while (one && !isIt(one)) one = one.outer
  return one
}

// The two would commit separately: an event could be recorded as handled while what it emitted is rolled back, or the
// other way round. With a pool of one connection they would wait for each other.
export function secondTransaction(
  call: 'withOutbox()' | 'once()',
  { kind: inside }: Surrounding,
): OutboxError {
  const where = inside === 'withOutbox()' ? 'a unit of work' : inside
  return new OutboxError(
    'NESTED',
    `${call} inside ${where} would open a second transaction, which commits separately from the first; ${remedyFor(call, inside)}`,
  )
}

function remedyFor(call: 'withOutbox()' | 'once()', inside: Surrounding['kind']): string {
  if (inside === 'a transaction of your own') {
    return call === 'once()' ? 'use onceIn(tx, message, ...)' : OWN_TRANSACTION_REMEDY
  }
  return call === 'withOutbox()' && inside === 'withOutbox()'
    ? 'use one outbox for both, save into the first transaction with emitIn(tx, event), or begin a separate one on outbox.db'
    : 'use one transaction for both: outbox.withOutbox((tx, emit) => inbox.onceIn(tx, message, ...))'
}

export const OWN_TRANSACTION_REMEDY =
  'begin your transaction on outbox.db, or save into it with outbox.emitIn(tx, event)'
