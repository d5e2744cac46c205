// Which outboxes use a publisher: between their start() and stop(), and while a call such as drain() sends. A process with an
// outbox for each tenant needs one connection to the broker, not a hundred: outboxes may share a publisher. stop() asks to close
// it, and the last user does.
import type { Publisher } from './publisher.ts'

interface Uses {
  readonly users: Set<object>
  isAsked: boolean
}

const usesOf = new WeakMap<Publisher, Uses>()

/** Returns whether the user is the first one. `keepOpen`: it will ask to close the publisher itself, when it stops. */
export function beginUse(publisher: Publisher, user: object, { keepOpen = false } = {}): boolean {
  const uses = of(publisher)
  uses.users.add(user)
  if (keepOpen) uses.isAsked = false
  return uses.users.size === 1
}

export function askToClose(publisher: Publisher): void {
  of(publisher).isAsked = true
}

/** Returns whether no user is left and the publisher is to be closed, so that the caller disconnects. */
export function endUse(publisher: Publisher, ...ending: readonly object[]): boolean {
  const uses = of(publisher)
  for (const user of ending) uses.users.delete(user)
  if (!uses.isAsked || uses.users.size > 0) return false
  uses.isAsked = false
  return true
}

function of(publisher: Publisher): Uses {
  let uses = usesOf.get(publisher)
  if (!uses) usesOf.set(publisher, (uses = { users: new Set(), isAsked: false }))
  return uses
}
