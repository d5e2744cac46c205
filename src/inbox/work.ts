// What once() takes and what it returns.
import type { EventCatalog, EventName, ReceivedPayload } from '../event/catalog.ts'
import type { AnyDatabase, TransactionOf } from '../drivers/driver.ts'
import type { InboxEvent } from './event.ts'

/** The outcome of a message. The inbox called the work only if it is `handled`. */
export type InboxOutcome<T> =
  | { readonly outcome: 'handled'; readonly result: T }
  /** The event was handled before. */
  | { readonly outcome: 'duplicate' }
  /** With `order: 'aggregate'`: a later event of its aggregate and lane was handled before it. Nothing is recorded. */
  | { readonly outcome: 'late' }

/** An event as the work receives it. With a catalog, its type determines the type of its payload. */
export type EventOf<TEvents extends EventCatalog | undefined> = [TEvents] extends [EventCatalog]
  ? {
      [Name in EventName<TEvents>]: InboxEvent<Name, ReceivedPayload<TEvents, Name>>
    }[EventName<TEvents>]
  : InboxEvent

/** The work to do once. All its effects must go through `tx`. */
export type InboxWork<TDb extends AnyDatabase, TEvents extends EventCatalog | undefined, T> = (
  tx: TransactionOf<TDb>,
  event: EventOf<TEvents>,
) => Promise<T> | T
