// What is handed to once(), and what it answers.
import type { EventCatalog, EventName, ReceivedPayload } from '../catalog.ts'
import type { AnyDatabase, TransactionOf } from '../drivers/driver.ts'
import type { InboxEvent } from './event.ts'

/** What became of a message. Only `handled` has called the work. */
export type InboxOutcome<T> =
  | { readonly outcome: 'handled'; readonly result: T }
  /** It was handled before. */
  | { readonly outcome: 'duplicate' }
  /** With `order: 'aggregate'`: a later event of its aggregate was handled before it. Nothing is recorded. */
  | { readonly outcome: 'late' }

/** An event as the work gets it: with a catalog, its type tells its payload. */
export type EventOf<TEvents extends EventCatalog | undefined> = [TEvents] extends [EventCatalog]
  ? {
      [Name in EventName<TEvents>]: InboxEvent<Name, ReceivedPayload<TEvents, Name>>
    }[EventName<TEvents>]
  : InboxEvent

/** What is to happen once: in `tx`, all of it. */
export type InboxWork<TDb extends AnyDatabase, TEvents extends EventCatalog | undefined, T> = (
  tx: TransactionOf<TDb>,
  event: EventOf<TEvents>,
) => Promise<T> | T
