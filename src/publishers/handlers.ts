// In-process handlers by event type, as a publisher: the outbox without a broker.
// A crash while a handler runs runs it again later, so handlers have to be idempotent by event id.
import { performance } from 'node:perf_hooks'
import {
  defineEvents,
  type EventCatalog,
  type EventName,
  type ReceivedPayload,
} from '../catalog.ts'
import { type Duration, formatDuration } from '../duration.ts'
import { OutboxOptionsError, PublishError } from '../errors.ts'
import { orderingKey, type OutboxEvent } from '../events.ts'
import { groupBy } from '../group-by.ts'
import { rejectUnknown, requireDuration, suggest } from '../validate.ts'
import type { Publisher, PublishResult } from './publisher.ts'

/** An event as a handler gets it: the payload parsed. */
export interface HandledEvent<Payload = unknown> extends Omit<OutboxEvent, 'payload'> {
  readonly payload: Payload
}

/** Throwing counts as an attempt. The signal aborts when the timeout has passed. */
export type Handler<Payload = unknown> = (
  event: HandledEvent<Payload>,
  signal: AbortSignal,
) => Promise<void> | void

/** The type of the copies that the option `deadLetterTopic` makes; they are in nobody's catalog. */
type Copy = 'DeadLettered'

type Handlers<TEvents extends EventCatalog | undefined> = [TEvents] extends [EventCatalog]
  ? {
      readonly [Name in EventName<TEvents> | Copy]?: Handler<
        Name extends EventName<TEvents> ? ReceivedPayload<TEvents, Name> : unknown
      >
    }
  : Readonly<Record<string, Handler>>

export interface HandlersPublisherOptions<TEvents extends EventCatalog | undefined = undefined> {
  /** By event type. An event that has no handler fails, and is tried again like any other failure. */
  handlers: Handlers<TEvents>
  /** The catalog that names the events and types their payloads. @default any name, and `unknown` */
  events?: TEvents
  /** How long a handler may take. @default '30s' */
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

  async function handle(event: OutboxEvent): Promise<PublishResult> {
    const { topic, aggregateId: key } = event
    const handler = handlers.get(event.type)
    try {
      if (!handler) throw noHandler(event.type, [...handlers.keys()])
      await runWithin(timeoutMs, event, handler)
      return { ok: true, topic, key, partition: null, offset: null }
    } catch (thrown) {
      return { ok: false, kind: 'rejected', error: toPublishError(event.type, thrown) }
    }
  }

  // Aggregates side by side; within one, each event waits for the one before it. A batch takes on new
  // events for one timeout, so that a long lane gets what it has done recorded before it goes on.
  async function publish(events: readonly OutboxEvent[]): Promise<PublishResult[]> {
    const results = new Map<OutboxEvent, PublishResult>()
    const closesAt = performance.now() + timeoutMs
    const handleLane = async (lane: readonly OutboxEvent[]) => {
      for (const event of lane) {
        if (performance.now() > closesAt) return
        const result = await handle(event)
        results.set(event, result)
        if (!result.ok) return
      }
    }
    await Promise.all([...groupBy(events, orderingKey).values()].map(handleLane))
    return events.map((event) => results.get(event) ?? HELD)
  }

  const settlesWithinMs = timeoutMs * 2
  return {
    name: 'handlers',
    perAggregate: true,
    timeoutMs: settlesWithinMs,
    settlesWithinMs,
    publish,
  }
}

const HELD: PublishResult = {
  ok: false,
  kind: 'held',
  error: new PublishError('PUBLISH_FAILED', 'waits for an earlier event of its aggregate'),
}

async function runWithin(ms: number, event: OutboxEvent, handler: Handler): Promise<void> {
  const controller = new AbortController()
  const timer = setTimeout(() => controller.abort(), ms)
  const timedOut = new Promise<never>((_, reject) => {
    controller.signal.addEventListener('abort', () => {
      const message = `the handler of '${event.type}' took longer than ${formatDuration(ms)}`
      reject(new PublishError('HANDLER_TIMEOUT', `${message}; raise timeout or let it do less`))
    })
  })
  try {
    const payload: unknown = JSON.parse(event.payload)
    await Promise.race([handler({ ...event, payload }, controller.signal), timedOut])
  } finally {
    clearTimeout(timer)
  }
}

function checkNames(types: readonly string[], events: EventCatalog): void {
  const known = [...Object.keys(defineEvents(events)), 'DeadLettered' satisfies Copy]
  const unknown = types.find((type) => !known.includes(type))
  if (unknown === undefined) return
  throw new OutboxOptionsError(
    `handlersPublisher() has a handler for '${unknown}', which the catalog does not have; ${suggest(unknown, known)}`,
  )
}

function noHandler(type: string, known: readonly string[]): PublishError {
  const names = known.length > 0 ? known.join(', ') : 'none at all'
  return new PublishError(
    'NO_HANDLER',
    `no handler for '${type}'; handlersPublisher() was given ${names}`,
  )
}

function toPublishError(type: string, thrown: unknown): PublishError {
  if (thrown instanceof PublishError) return thrown
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return new PublishError('HANDLER_FAILED', `the handler of '${type}' failed: ${message}`, {
    cause: thrown,
  })
}
