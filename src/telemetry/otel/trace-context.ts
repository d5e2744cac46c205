// W3C trace context as headers of an event. Written and read here, and not by the application's propagator, because the
// header has to be `traceparent` whatever the application uses for its own calls: the inbox and other consumers read that.
import {
  type Context,
  context,
  createContextKey,
  createTraceState,
  isSpanContextValid,
  propagation,
  ROOT_CONTEXT,
  type SpanContext,
  trace,
} from '@opentelemetry/api'
import type { TextHeaders } from '../telemetry.ts'

const TRACEPARENT = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-.*)?$/
const TRACEPARENT_NAME = 'traceparent'

/** The headers that carry this span to other processes. `baggage` is null if it should not travel. */
export function toHeaders(
  { traceId, spanId, traceFlags, traceState }: SpanContext,
  baggage: Context | null,
): TextHeaders {
  const flags = traceFlags.toString(16).padStart(2, '0')
  const state = traceState?.serialize()
  return {
    [TRACEPARENT_NAME]: `00-${traceId}-${spanId}-${flags}`,
    ...(state && { tracestate: state }),
    ...(baggage && baggageOf(baggage)),
  }
}

/** By the application's propagator, which knows the format and its limits. */
function baggageOf(from: Context): { baggage?: string } {
  const carrier: Record<string, unknown> = {}
  propagation.inject(from, carrier)
  const { baggage } = carrier
  return typeof baggage === 'string' ? { baggage } : {}
}

/** The span that the headers name, or null. */
export function spanContextOf(
  traceparent: string | null | undefined,
  tracestate?: string,
): SpanContext | null {
  const match = traceparent ? TRACEPARENT.exec(traceparent) : null
  if (!match) return null
  const [, traceId = '', spanId = '', flags = ''] = match
  const spanContext: SpanContext = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(tracestate && { traceState: createTraceState(tracestate) }),
  }
  return isSpanContextValid(spanContext) ? spanContext : null
}

/** A context in which spans are children of that one. */
export function contextOf(parent: SpanContext): Context {
  return trace.setSpanContext(ROOT_CONTEXT, parent)
}

export function withBaggage(onto: Context, headers: TextHeaders): Context {
  const found = propagation.getBaggage(propagation.extract(ROOT_CONTEXT, headers))
  return found ? propagation.setBaggage(onto, found) : onto
}

// The key by which SDKs know that they should record nothing. It is part of @opentelemetry/core, and symbols of that name
// are equal everywhere.
const SUPPRESSED = createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING')

/**
 * Silences the instrumentation of a broker's client. It would make a second span for each message and replace the trace
 * context of the event, of which it knows nothing, by its own.
 */
export function runSilenced(around: Context, work: () => void): void {
  context.with(around.setValue(SUPPRESSED, true), work)
}
