// The publisher behind @OnOutboxEvent(). It is made with the options, before Nest has created any provider, and gets its
// handlers when all of them exist. So a handler may inject a service that injects the outbox: neither waits for the other.
import { requireDuration, rejectUnknown } from '../checks/checks.ts'
import type { Duration } from '../checks/duration.ts'
import { PublishError } from '../errors.ts'
import { type Handler, publishToHandlers } from '../publishers/handlers.ts'
import type { Publisher } from '../publishers/publisher.ts'

export interface NestHandlersOptions {
  /** How long one handler may take. @default '30s' */
  timeout?: Duration
}

type Bind = (handlers: ReadonlyMap<string, Handler>) => void

const BINDS = new WeakMap<object, Bind>()

/** Calls the methods with @OnOutboxEvent(): the default of OutboxModule, or one publisher of a router. */
export function nestHandlers(options: NestHandlersOptions = {}): Publisher {
  rejectUnknown('nestHandlers()', options, ['timeout'])
  const timeoutMs = requireDuration('timeout', options.timeout ?? '30s', 1)
  const publisherOf = (handlers: ReadonlyMap<string, Handler>) =>
    publishToHandlers(handlers, timeoutMs, 'add a method with @OnOutboxEvent() to the application')
  let bound: Publisher | null = null
  const publisher: Publisher = {
    ...publisherOf(new Map()),
    // Only a flush() or drain() that runs before the application is initialised comes here without handlers.
    async publish(events, rules) {
      if (bound) return await bound.publish(events, rules)
      throw new PublishError(
        'PUBLISH_FAILED',
        'the handlers of @OnOutboxEvent() are not known before the application is initialised; send later',
      )
    },
  }
  BINDS.set(publisher, (handlers) => {
    bound = publisherOf(handlers)
  })
  return publisher
}

/** Gives the handlers to the publisher. Returns false if it is another kind of publisher. */
export function bindHandlers(
  publisher: Publisher,
  handlers: ReadonlyMap<string, Handler>,
): boolean {
  const bind = BINDS.get(publisher)
  bind?.(handlers)
  return bind !== undefined
}
