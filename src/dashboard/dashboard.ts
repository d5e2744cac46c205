// `aftercommit/dashboard`: a page on which people see an outbox and act on it, as a handler that the application mounts. It
// runs nothing of its own until a request comes.
import type { AnyDatabase } from '../drivers/driver.ts'
import type { EventCatalog } from '../event/catalog.ts'
import type { Outbox } from '../outbox.ts'
import { type FetchHandler, handlerOf } from './handler.ts'
import type { DashboardOptions } from './options.ts'
import { sourceOf } from './source.ts'

export type { FetchHandler } from './handler.ts'
export type { Access, DashboardOptions, EventToRedact, RedactedContent } from './options.ts'
export { type NodeListener, type NodeRequest, toNodeListener } from './node-listener.ts'

/**
 * Makes the dashboard of an outbox. Checks the options and throws OutboxOptionsError. Mount what it returns below
 * `basePath`; for Express, Fastify, Nest and node:http, with toNodeListener().
 */
export function dashboard<
  TDb extends AnyDatabase,
  TEvents extends EventCatalog | undefined = undefined,
>(outbox: Outbox<TDb, TEvents>, options: DashboardOptions): FetchHandler {
  return handlerOf(sourceOf(outbox), options)
}
