// Who runs the command, for those who see what it did.
import { hostname, userInfo } from 'node:os'

/** Such as `ada@laptop`. */
export function describeUser(): string {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    // The user has no entry in the system, as in some containers.
    return hostname()
  }
}
