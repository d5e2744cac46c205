// Which transactions of ours the running code is inside of, from the innermost outwards. One storage for all outboxes
// and inboxes: each further one would cost every promise of the process, and none could see the others.
import { AsyncLocalStorage } from 'node:async_hooks'
import { OutboxError } from './errors.ts'

export interface OpenScope {
  readonly kind: 'withOutbox()' | 'once()'
  /** The outbox or inbox that opened it. */
  readonly owner: object
  /** Whose connections it runs on. */
  readonly client: unknown
  readonly outer: OpenScope | undefined
  /** A timer or queue that was first touched inside a scope carries it along after its end. */
  readonly isOver: () => boolean
}

const storage = new AsyncLocalStorage<OpenScope>()

/** What a new scope is inside of. One that is over is left out, or a chain of timers would grow a chain of scopes. */
export function enclosingScope(): OpenScope | undefined {
  return find((scope) => !scope.isOver())
}

export function runInScope<T>(scope: OpenScope, work: () => T): T {
  return storage.run(scope, work)
}

/** Runs the work in a scope that ends with it. */
export async function runScoped<T>(
  about: Pick<OpenScope, 'kind' | 'owner' | 'client'>,
  work: () => Promise<T>,
): Promise<T> {
  let over = false
  try {
    return await storage.run({ ...about, outer: enclosingScope(), isOver: () => over }, work)
  } finally {
    over = true
  }
}

/** The innermost of those that the owner opened. */
export function scopeOf(owner: object): OpenScope | undefined {
  return find((scope) => scope.owner === owner)
}

/** The kind of the innermost transaction that is open on the client. */
export function openOn(client: unknown): OpenScope['kind'] | undefined {
  return find((scope) => scope.client === client && !scope.isOver())?.kind
}

function find(isIt: (scope: OpenScope) => boolean): OpenScope | undefined {
  let scope = storage.getStore()
  while (scope && !isIt(scope)) scope = scope.outer
  return scope
}

// They would commit apart: an event could be recorded as handled and what it emitted rolled back, or the other way
// round, and with a pool of one connection they would wait for each other.
export function secondTransaction(call: OpenScope['kind'], inside: OpenScope['kind']): OutboxError {
  return new OutboxError(
    'NESTED',
    `${call} inside ${inside} would be a second transaction, which commits apart from the first; make them one: outbox.withOutbox((tx, emit) => inbox.onceIn(tx, message, ...))`,
  )
}
