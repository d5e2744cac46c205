// The options of OutboxModule, and the outbox that the module makes of them.
import type { EventCatalog } from '../event/catalog.ts'
import type { AnyDatabase } from '../drivers/driver.ts'
import type { OutboxOptions } from '../options/options.ts'
import { createOutbox, type Outbox } from '../outbox.ts'
import { requireBoolean } from '../checks/checks.ts'
import { nestHandlers } from './nest-handlers.ts'
import { nestLogger } from './nest-logger.ts'

type Options = OutboxOptions<AnyDatabase, EventCatalog | undefined>

/** The options of createOutbox(), and what only Nest needs. */
export interface OutboxModuleOptions extends Omit<Options, 'publisher'> {
  /** Where events go. A router with nestHandlers() in it sends some topics to a broker. @default nestHandlers() */
  publisher?: Options['publisher']
  /**
   * Whether the outbox starts when the application has bootstrapped. If false, your code calls start(), or another process
   * publishes. @default true
   */
  start?: boolean
}

export type AnyOutbox = Outbox<AnyDatabase, EventCatalog | undefined>

/** Outboxes that the module made, and whether each starts with the application. One that a test put in their place is not in it. */
const STARTS = new WeakMap<object, boolean>()

export function makeOutbox(options: OutboxModuleOptions, name: string): AnyOutbox {
  const { start = true, publisher = nestHandlers(), logger = nestLogger(name), ...rest } = options
  const starts = requireBoolean('start', start)
  const outbox = createOutbox({ ...rest, publisher, logger })
  STARTS.set(outbox, starts)
  return outbox
}

/** undefined: the module did not make this outbox. */
export function startsWithApplication(outbox: object): boolean | undefined {
  return STARTS.get(outbox)
}
