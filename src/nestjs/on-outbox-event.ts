// The decorator that marks a method as the handler of an event. It only notes that for discovery.ts, which reads it when the
// application starts. The note is on the class, under the method's name: another decorator may replace the function.
import type { EventCatalog, EventName, ReceivedPayload } from '../event/catalog.ts'
import type { Handler } from '../publishers/handlers.ts'
import { DEFAULT_NAME } from './tokens.ts'

export interface OnOutboxEventOptions {
  /** The name of the outbox whose events it handles. @default the outbox without a name */
  outbox?: string
}

/** What a method was decorated with. */
export interface Marked {
  readonly type: string
  readonly outbox: string
}

/** What TypeScript allows the method to be. */
type HandlerDecorator<THandler> = <T extends THandler>(
  target: object,
  method: string | symbol,
  descriptor: TypedPropertyDescriptor<T>,
) => void

const METADATA = 'aftercommit:on-outbox-event'

/**
 * Makes a method of a provider or controller the handler of an event type. Each type has one handler; a method may handle
 * several. With the catalog as the first argument, the compiler checks the name and the payload.
 */
export function OnOutboxEvent<TEvents extends EventCatalog, Name extends EventName<TEvents>>(
  events: TEvents,
  type: Name,
  options?: OnOutboxEventOptions,
): HandlerDecorator<Handler<ReceivedPayload<TEvents, Name>>>
export function OnOutboxEvent(
  type: string,
  options?: OnOutboxEventOptions,
  // oxlint-disable-next-line typescript/no-explicit-any -- without a catalog the method declares what it takes
): HandlerDecorator<Handler<any>>
export function OnOutboxEvent(
  ...given: readonly unknown[]
): (target: object, method: string | symbol) => void {
  const [type, options = {}] = (typeof given[0] === 'string' ? given : given.slice(1)) as [
    string,
    OnOutboxEventOptions?,
  ]
  const { outbox = DEFAULT_NAME } = options
  return (target, method) => {
    const marks = [...marksOf(target, method), { type, outbox }]
    Reflect.defineMetadata(METADATA, marks, target, method)
  }
}

/** Of the method of that very class, not of one that it overrides. */
export function marksOf(prototype: object, method: string | symbol): readonly Marked[] {
  return (Reflect.getOwnMetadata(METADATA, prototype, method) as Marked[] | undefined) ?? []
}
