// The spans of an event: `create` inside the request, `send` for the batch that takes it to the broker, `process` in the
// inbox. Each is linked to the next by the trace context in the event's headers, so it does not matter which process sends.
import {
  type Attributes,
  type Context,
  context,
  type Link,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from '@opentelemetry/api'
import { OutboxError } from '../../errors.ts'
import type { PublishFailure, PublishResult } from '../../event/publish-result.ts'
import type {
  CreatedEvent,
  DeliveredEvent,
  End,
  Processed,
  SentBatch,
  TextHeaders,
} from '../telemetry.ts'
import { ATTRIBUTES, OPERATIONS, OWN_ATTRIBUTES } from './names.ts'
import { contextOf, runSilenced, spanContextOf, toHeaders, withBaggage } from './trace-context.ts'

type SentEvent = SentBatch['events'][number]

export class Spans {
  readonly #tracer: Tracer
  readonly #baggage: boolean

  constructor(tracer: Tracer, baggage: boolean) {
    this.#tracer = tracer
    this.#baggage = baggage
  }

  /**
   * Returns the headers that name the span. An event with a trace context of its own gets neither. In a request that is
   * not sampled, the span would not be seen, so its event carries the context of the request: that saves most of the cost.
   */
  create({ id, type, topic, system, headers }: CreatedEvent): TextHeaders | null {
    if ('traceparent' in headers) return null
    const request = context.active()
    const baggage = this.#baggage ? request : null
    const around = trace.getSpan(request)
    if (around && isUnsampled(around)) return toHeaders(around.spanContext(), baggage)
    const attributes = {
      ...operation(OPERATIONS.create, system, topic),
      [ATTRIBUTES.messageId]: id,
      [OWN_ATTRIBUTES.eventType]: type,
    }
    const named = `${OPERATIONS.create} ${topic}`
    const span = this.#tracer.startSpan(named, { kind: SpanKind.PRODUCER, attributes }, request)
    const spanContext = span.spanContext()
    span.end()
    if (!trace.isSpanContextValid(spanContext)) return null
    return toHeaders(spanContext, baggage)
  }

  send(batch: SentBatch, publish: () => void): End<readonly PublishResult[]> {
    const { system, events } = batch
    const begun = this.#beginSend(batch)
    const around = begun ? trace.setSpan(begun.parent, begun.span) : ROOT_CONTEXT
    // Handlers are the application's own code, and the client of an unknown publisher may be instrumented like any other.
    if (system === null) context.with(around, publish)
    else runSilenced(around, publish)
    if (!begun) return undefined
    const { span } = begun
    return (results) => {
      if (events.length === 1) span.setAttributes(placeOf(results[0]!, system))
      const failure = results.find(isFailure)
      if (failure) fail(span, failure.error)
      span.end()
    }
  }

  process(delivered: DeliveredEvent, handle: () => void): End<Processed> {
    const span = this.#beginProcess(delivered, handle)
    return (processed) => {
      span.setAttribute(OWN_ATTRIBUTES.outcome, processed.outcome)
      if (processed.outcome === 'failed') fail(span, processed.error)
      span.end()
    }
  }

  // A batch of one continues the trace of its event. A larger one belongs to no single trace, so it only has links. If no
  // event of it is sampled, neither is the batch.
  #beginSend({ publisher, system, path, events }: SentBatch) {
    const links: Link[] = []
    let isSampled = false
    for (const { headers } of events) {
      const created = spanContextOf(headers['traceparent'], headers['tracestate'])
      if (created && !(created.traceFlags & TraceFlags.SAMPLED)) continue
      isSampled = true
      if (created) links.push({ context: created })
    }
    if (!isSampled) return null
    const single = events.length === 1 ? events[0]! : null
    const topic = topicOf(events)
    const attributes = {
      ...operation(OPERATIONS.send, system ?? publisher, topic),
      [OWN_ATTRIBUTES.publisher]: publisher,
      [OWN_ATTRIBUTES.path]: path,
      ...(single
        ? { [ATTRIBUTES.messageId]: single.id }
        : { [ATTRIBUTES.batchCount]: events.length }),
    }
    const parent = single && links[0] ? contextOf(links[0].context) : ROOT_CONTEXT
    const options = { kind: SpanKind.CLIENT, attributes, links }
    const named = topic === null ? OPERATIONS.send : `${OPERATIONS.send} ${topic}`
    return { parent, span: this.#tracer.startSpan(named, options, parent) }
  }

  #beginProcess(delivered: DeliveredEvent, handle: () => void): Span {
    const { id, type, consumer, system, destination, traceparent, headers } = delivered
    const created = spanContextOf(traceparent, headers['tracestate'])
    const active = context.active()
    const ambient = trace.getSpanContext(active)
    const own: Attributes = { [OWN_ATTRIBUTES.consumer]: consumer }
    const run = (span: Span, parent: Context) => {
      context.with(trace.setSpan(parent, span), handle)
      return span
    }
    // The consumer's own instrumentation, or the application, has continued the trace: a second `process` would count the
    // message twice.
    if (created && ambient?.traceId === created.traceId) {
      return run(this.#tracer.startSpan(`once ${consumer}`, { attributes: own }, active), active)
    }
    const attributes = {
      ...operation(OPERATIONS.process, system, destination),
      [ATTRIBUTES.messageId]: id,
      ...(type !== null && { [OWN_ATTRIBUTES.eventType]: type }),
      ...own,
    }
    const named = destination === null ? OPERATIONS.process : `${OPERATIONS.process} ${destination}`
    const isChild = ambient === undefined && created !== null
    const links = !isChild && created ? [{ context: created }] : []
    const continued = isChild ? contextOf(created) : active
    const parent = isChild && this.#baggage ? withBaggage(continued, headers) : continued
    const options = { kind: SpanKind.CONSUMER, attributes, links }
    return run(this.#tracer.startSpan(named, options, parent), parent)
  }
}

function isUnsampled(span: Span): boolean {
  const spanContext = span.spanContext()
  const isSampled = (spanContext.traceFlags & TraceFlags.SAMPLED) !== 0
  return !isSampled && !span.isRecording() && trace.isSpanContextValid(spanContext)
}

function operation(
  name: 'create' | 'send' | 'process',
  system: string | null,
  destination: string | null,
): Attributes {
  return {
    ...(system !== null && { [ATTRIBUTES.system]: system }),
    [ATTRIBUTES.operationName]: name,
    [ATTRIBUTES.operationType]: name,
    ...(destination !== null && { [ATTRIBUTES.destination]: destination }),
  }
}

/** The topic of all of them, or null if they have several. */
export function topicOf(events: readonly SentEvent[]): string | null {
  const { topic } = events[0]!
  return events.every((event) => event.topic === topic) ? topic : null
}

function placeOf(result: PublishResult, system: string | null): Attributes {
  if (!result.ok) return {}
  const { partition, offset } = result
  const attributes: Attributes = {}
  if (partition !== null) attributes[ATTRIBUTES.partition] = String(partition)
  if (offset !== null && system === 'kafka') attributes[ATTRIBUTES.kafkaOffset] = Number(offset)
  return attributes
}

/** Whether the event was tried and failed. */
export function isFailure(result: PublishResult): result is PublishFailure {
  return !result.ok && result.kind !== 'held'
}

// Only the kind of error: its message may quote a payload.
function fail(span: Span, error: unknown): void {
  span.setAttribute(ATTRIBUTES.errorType, errorTypeOf(error))
  span.setStatus({ code: SpanStatusCode.ERROR })
}

/** Of few values, for use in metrics. */
export function errorTypeOf(error: unknown): string {
  if (error instanceof OutboxError) return error.code
  return error instanceof Error ? error.name : '_OTHER'
}
