// Which outboxes use a publisher: between their start() and stop(), and while a call such as drain() sends. A process with an outbox for each tenant needs one
// connection to the broker, not a hundred: outboxes may share a publisher, and the last one that stops closes it.
import type { Publisher } from './publisher.ts'

const usersOf = new WeakMap<Publisher, Set<object>>()

/** Returns whether the user is the first one, who connects. */
export function beginUse(publisher: Publisher, user: object): boolean {
  const users = usersOf.get(publisher) ?? new Set()
  usersOf.set(publisher, users.add(user))
  return users.size === 1
}

/** Returns whether no user is left, so that this one disconnects. */
export function endUse(publisher: Publisher, user: object): boolean {
  const users = usersOf.get(publisher)
  users?.delete(user)
  return !users?.size
}
