// A handler that starts, says so, and ends when it is told to.
import type { Handler } from '../../../src/publishers/handlers.ts'
import { defer } from './deferred.ts'

export type BlockedHandler = {
  readonly handler: Handler
  /** Resolves with the id of the first event that the handler got. */
  readonly started: Promise<string>
  readonly release: () => void
  /** The ids of the events it is done with. */
  readonly handled: readonly string[]
}

export function blockedHandler(): BlockedHandler {
  const started = defer<string>()
  const release = defer()
  const handled: string[] = []
  const handler: Handler = async (event) => {
    started.resolve(event.id)
    await release.promise
    handled.push(event.id)
  }
  return { handler, started: started.promise, release: () => release.resolve(), handled }
}
