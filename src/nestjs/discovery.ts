// Finds the methods with @OnOutboxEvent() once every provider exists, and refuses what could not be called, or would be
// called for the wrong event.
import type { DiscoveryService } from '@nestjs/core'
import { suggest } from '../checks/checks.ts'
import { OutboxError } from '../errors.ts'
import type { EventCatalog } from '../event/catalog.ts'
import { type Handler, handledTypes } from '../publishers/handlers.ts'
import { type Marked, marksOf } from './on-outbox-event.ts'

type Provider = ReturnType<DiscoveryService['getProviders']>[number]
type Methods = Record<string | symbol, Handler>

export interface FoundHandler extends Marked {
  /** As messages name it: `MailService.send`. */
  readonly name: string
  readonly handler: Handler
}

/** All of them, for every outbox of the application. */
export function findHandlers(discovery: DiscoveryService): FoundHandler[] {
  const seen = new Map<unknown, Provider>()
  for (const provider of [...discovery.getProviders(), ...discovery.getControllers()]) {
    // The same object may be provided under two tokens.
    if (isObject(provider.instance) && !provider.isAlias && !seen.has(provider.instance))
      seen.set(provider.instance, provider)
  }
  return [...seen.values()].flatMap(handlersOf)
}

function handlersOf(provider: Provider): FoundHandler[] {
  const instance = provider.instance as Methods
  return [...methodsOf(instance)].flatMap(([method, prototype]) =>
    marksOf(prototype, method).map((mark) => {
      const name = `${instance.constructor.name}.${String(method)}`
      requireSingleton(provider, name)
      // By name, so that a test may spy on the method.
      return { ...mark, name, handler: (event, signal) => instance[method]!(event, signal) }
    }),
  )
}

/** Each method with the class that has it. One of a subclass hides the one that it overrides. */
function methodsOf(instance: object): Map<string | symbol, object> {
  const methods = new Map<string | symbol, object>()
  let prototype = Object.getPrototypeOf(instance) as object | null
  while (prototype && prototype !== Object.prototype) {
    for (const name of Reflect.ownKeys(prototype)) {
      if (!methods.has(name)) methods.set(name, prototype)
    }
    prototype = Object.getPrototypeOf(prototype) as object | null
  }
  return methods
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

function requireSingleton(provider: Provider, name: string): void {
  const scoped = provider.isTransient ? 'transient' : 'request-scoped'
  if (!provider.isTransient && provider.isDependencyTreeStatic()) return
  throw invalid(
    `${name}() handles an event, but its provider is ${scoped}, or injects one that is; no request is there when an event is handled: move the method to a provider of the default scope`,
  )
}

/** The handlers by event type. Throws if a type has two, or the catalog does not have it. */
export function handlersByType(
  found: readonly FoundHandler[],
  catalog: EventCatalog | null,
): ReadonlyMap<string, Handler> {
  const known = catalog && handledTypes(catalog)
  const byType = new Map<string, FoundHandler>()
  for (const one of found) {
    const { type, name } = one
    if (known && !known.includes(type)) {
      throw invalid(
        `${name}() handles '${type}', which is not in the catalog; ${suggest(type, known)}`,
      )
    }
    const other = byType.get(type)
    if (other) {
      throw invalid(
        `'${type}' has two handlers, ${other.name}() and ${name}(), of which one would be repeated when the other fails; call both from one handler, or emit an event for each. If it is one method, its class is provided in two modules: export it from one`,
      )
    }
    byType.set(type, one)
  }
  return new Map([...byType].map(([type, { handler }]) => [type, handler]))
}

export function invalid(message: string): OutboxError {
  return new OutboxError('HANDLER_INVALID', message)
}
