// What an outbox is made of, for the library's own tools that are given one, such as the dashboard. They are loaded only by
// those who use them, so the outbox itself does not grow by them. Not part of the public API.
import type { Pauses } from '../delivery/pauses.ts'
import type { Database } from '../drivers/driver.ts'
import type { ResolvedOptions } from '../options/options.ts'
import type { Bell } from '../runtime/bell.ts'
import type { Logger } from '../runtime/logger.ts'
import type { History } from './history.ts'

/** From the global registry: a bundler may have put this file into two bundles. */
const OWN_PARTS = Symbol.for('aftercommit.own-parts')

export interface OwnParts {
  readonly db: Database<unknown>
  readonly options: ResolvedOptions
  /** Of the application, also after stop(). */
  readonly logger: Logger
  readonly bell: Bell
  readonly pauses: Pauses
  readonly history: History
}

export function keepParts(outbox: object, parts: OwnParts): void {
  Object.defineProperty(outbox, OWN_PARTS, { value: parts })
}

/** null: createOutbox() did not make this. */
export function partsOf(outbox: unknown): OwnParts | null {
  const { [OWN_PARTS]: parts } = (outbox ?? {}) as { [OWN_PARTS]?: OwnParts }
  return parts ?? null
}
