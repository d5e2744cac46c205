// The transactions of ours that enclose the running code, from the innermost outwards. All outboxes and inboxes share
// one storage: each further one would slow every promise of the process, and could not see the others.
import { AsyncLocalStorage } from 'node:async_hooks'
import { OutboxError } from '../errors.ts'

export interface Surrounding {
  readonly kind: 'withOutbox()' | 'once()'
  /** The outbox or inbox that opened it. */
  readonly owner: object
  /** The client whose connections it runs on. */
  readonly client: unknown
  readonly outer: Surrounding | undefined
  /** Whether it has ended. Timers and queues created inside a transaction still carry it after its end. */
  readonly isOver: () => boolean
}

const storage = new AsyncLocalStorage<Surrounding>()

/** What encloses a new one. Ended ones are left out; otherwise a chain of timers would grow a chain of surroundings. */
export function enclosing(): Surrounding | undefined {
  return find((one) => !one.isOver())
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

/** The innermost surrounding that the owner opened. */
export function innermostOf(owner: object): Surrounding | undefined {
  return find((one) => one.owner === owner)
}

/** The kind of the innermost transaction that is open on the client. */
export function openOn(client: unknown): Surrounding['kind'] | undefined {
  return find((one) => one.client === client && !one.isOver())?.kind
}

function find(isIt: (one: Surrounding) => boolean): Surrounding | undefined {
  let one = storage.getStore()
  while (one && !isIt(one)) one = one.outer
  return one
}

// The two would commit separately: an event could be recorded as handled while what it emitted is rolled back, or the
// other way round. With a pool of one connection they would wait for each other.
export function secondTransaction(
  call: Surrounding['kind'],
  inside: Surrounding['kind'],
): OutboxError {
  const remedy =
    call === 'withOutbox()' && inside === 'withOutbox()'
      ? 'use one outbox for both, or begin the second unit of work after the first has ended'
      : 'use one transaction for both: outbox.withOutbox((tx, emit) => inbox.onceIn(tx, message, ...))'
  return new OutboxError(
    'NESTED',
    `${call} inside ${inside} would open a second transaction, which commits separately from the first; ${remedy}`,
  )
}
