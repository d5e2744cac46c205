// Gives up on the client before the client itself does. When a request times out, version 2 closes the connection and
// version 1 does so at the late response; either way the other requests on it lose acks that were on their way, and are sent
// again. So the client waits longer than the publisher, and reads late responses that no call waits for any more.
import { raceTimeout } from '../../runtime/race-timeout.ts'

/** Longer than a producer takes further calls behind one that hangs. */
const GRACE_MS = 3_000

export function clientTimeout(requestTimeoutMs: number): number {
  return requestTimeoutMs + GRACE_MS
}

export async function limit<T>(what: string, ms: number, promise: Promise<T>): Promise<T> {
  const result = await raceTimeout(promise, ms, { keepAlive: true })
  if (result === 'late') throw new Error(`${what} timed out after ${ms} ms`)
  return result
}
