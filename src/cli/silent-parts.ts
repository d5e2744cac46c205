// What the classes of upkeep/ need besides the store. The CLI prints results itself, and has no fallback to wake.
import { Bell } from '../runtime/bell.ts'
import { silentLogger } from '../runtime/logger.ts'

export function silentParts<TStore>(store: TStore) {
  return { store, logger: silentLogger, bell: new Bell() }
}
