// A publisher that runs in-process handlers by event type: the outbox without a broker.
// After a crash during a handler, the handler runs again later, so handlers must be idempotent by event id.
import { performance } from 'node:perf_hooks'
import {
  defineEvents,
  type EventCatalog,
  type EventName,
  type ReceivedPayload,
} from '../event/catalog.ts'
import { type Duration, formatDuration } from '../checks/duration.ts'
import { messageOf, OutboxOptionsError, PublishError } from '../errors.ts'
import type { OutboxEvent } from '../event/event.ts'
import { groupBy } from '../runtime/group-by.ts'
import { rejectUnknown, requireDuration, suggest } from '../checks/checks.ts'
import type { PublishResult } from '../event/publish-result.ts'
import { type Publisher, TOOK_TOO_LONG } from './publisher.ts'

/** An event as a handler receives it, with its payload parsed. */
export interface HandledEvent<Payload = unknown> extends Omit<OutboxEvent, 'payload'> {
  readonly payload: Payload
}

/** A handler that throws uses up an attempt. The signal aborts when the timeout has passed. */
export type Handler<Payload = unknown> = (
  event: HandledEvent<Payload>,
  signal: AbortSignal,
) => Promise<void> | void

/** An event of a catalog as its handler receives it. */
export type HandledEventOf<
  TEvents extends EventCatalog,
  Name extends EventName<TEvents>,
> = HandledEvent<ReceivedPayload<TEvents, Name>>

/** The type of the copies that the option `deadLetterTopic` makes. No catalog declares it. */
type Copy = 'DeadLettered'

type Handlers<TEvents extends EventCatalog | undefined> = [TEvents] extends [EventCatalog]
  ? {
      readonly [Name in EventName<TEvents> | Copy]?: Handler<
        Name extends EventName<TEvents> ? ReceivedPayload<TEvents, Name> : unknown
      >
    }
  : Readonly<Record<string, Handler>>

export interface HandlersPublisherOptions<TEvents extends EventCatalog | undefined = undefined> {
  /** Handlers by event type. An event without a handler fails and is tried again like any other failure. */
  handlers: Handlers<TEvents>
  /** The catalog that names the events and types their payloads. @default any name, and `unknown` */
  events?: TEvents
  /** How long one handler may take. @default '30s' */
  timeout?: Duration
}

export function handlersPublisher<TEvents extends EventCatalog | undefined = undefined>(
  options: HandlersPublisherOptions<TEvents>,
): Publisher {
  rejectUnknown('handlersPublisher()', options, ['handlers', 'events', 'timeout'])
  if (typeof options.handlers !== 'object' || options.handlers === null) {
    throw new OutboxOptionsError(
      'handlersPublisher() takes handlers, functions by event type: { handlers: { OrderPlaced: async (event) => {} } }',
    )
  }
  const handlers = new Map(Object.entries<Handler>(options.handlers as Record<string, Handler>))
  for (const [type, handler] of handlers) {
    if (typeof handler !== 'function') {
      throw new OutboxOptionsError(`the handler of '${type}' must be a function`)
    }
  }
  if (options.events !== undefined) checkNames([...handlers.keys()], options.events)
  const timeoutMs = requireDuration('timeout', options.timeout ?? '30s', 1)
  const publisher = publishToHandlers(handlers, timeoutMs, 'add one to handlersPublisher()')
  HANDLED.set(publisher, [...handlers.keys()])
  return publisher
}

const HANDLED = new WeakMap<object, readonly string[]>()

/** @internal The event types that a handlersPublisher() has handlers for. None, if it is another publisher. */
export function typesHandledBy(publisher: Publisher): readonly string[] {
  return HANDLED.get(publisher) ?? []
}

/** @internal The publisher behind handlersPublisher() and nestHandlers(). `remedy` explains how to add a handler. */
export function publishToHandlers(
  handlers: ReadonlyMap<string, Handler>,
  timeoutMs: number,
  remedy: string,
): Publisher {
  async function handle(event: OutboxEvent): Promise<PublishResult> {
    const { topic, aggregateId: key } = event
    const handler = handlers.get(event.type)
    try {
      if (!handler) throw noHandler(event.type, [...handlers.keys()], remedy)
      await runWithin(timeoutMs, event, handler)
      return { ok: true, topic, key, partition: null, offset: null }
    } catch (thrown) {
      return { ok: false, kind: 'rejected', error: toPublishError(event.type, thrown) }
    }
  }

  // Lanes run in parallel; within one, each event waits for the one before it. A batch starts new events for the length
  // of one timeout only, so that the outcomes of a long lane are recorded before it continues.
  async function publish(events: readonly OutboxEvent[]): Promise<PublishResult[]> {
    const results = new Map<OutboxEvent, PublishResult>()
    const closesAt = performance.now() + timeoutMs
    const handleLane = async (lane: readonly OutboxEvent[]) => {
      for (const [n, event] of lane.entries()) {
        if (performance.now() > closesAt) {
          for (const left of lane.slice(n)) results.set(left, TOOK_TOO_LONG)
          return
        }
        const result = await handle(event)
        results.set(event, result)
        if (!result.ok) return
      }
    }
    await Promise.all([...groupBy(events, ({ lane }) => lane).values()].map(handleLane))
    return events.map((event) => results.get(event) ?? HELD)
  }

  const settlesWithinMs = timeoutMs * 2
  return {
    name: 'handlers',
    perLane: true,
    timeoutMs: settlesWithinMs,
    settlesWithinMs,
    publish,
  }
}

const HELD: PublishResult = {
  ok: false,
  kind: 'held',
  error: new PublishError('PUBLISH_FAILED', 'waits for an earlier event of its lane'),
}

async function runWithin(ms: number, event: OutboxEvent, handler: Handler): Promise<void> {
  const controller = new AbortController()
  const timer = setTimeout(() => controller.abort(), ms)
  const timedOut = new Promise<never>((_, reject) => {
    controller.signal.addEventListener('abort', () => {
      const message = `the handler of '${event.type}' took longer than ${formatDuration(ms)}`
      reject(
        new PublishError(
          'HANDLER_TIMEOUT',
          `${message}; raise timeout or make the handler do less`,
        ),
      )
    })
  })
  try {
    const payload: unknown = JSON.parse(event.payload)
    await Promise.race([handler({ ...event, payload }, controller.signal), timedOut])
  } finally {
    clearTimeout(timer)
  }
}

/** @internal The names that a handler may be for. */
export function handledTypes(events: EventCatalog): string[] {
  return [...Object.keys(defineEvents(events)), 'DeadLettered' satisfies Copy]
}

function checkNames(types: readonly string[], events: EventCatalog): void {
  const known = handledTypes(events)
  const unknown = types.find((type) => !known.includes(type))
  if (unknown === undefined) return
  throw new OutboxOptionsError(
    `handlersPublisher() has a handler for '${unknown}', which is not in the catalog; ${suggest(unknown, known)}`,
  )
}

function noHandler(type: string, known: readonly string[], remedy: string): PublishError {
  const handlers = known.length > 0 ? `handlers for ${known.join(', ')}` : 'no handlers'
  return new PublishError(
    'NO_HANDLER',
    `no handler for '${type}'; ${remedy}, which has ${handlers}`,
  )
}

function toPublishError(type: string, thrown: unknown): PublishError {
  if (thrown instanceof PublishError) return thrown
  return new PublishError(
    'HANDLER_FAILED',
    `the handler of '${type}' failed: ${messageOf(thrown)}`,
    {
      cause: thrown,
    },
  )
}
