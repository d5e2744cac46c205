// OpenTelemetry with spans that stay in memory. A service of your own registers an exporter instead, such as OTLP.
import { context, propagation, type Span, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'

const exporter = new InMemorySpanExporter()
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
propagation.setGlobalPropagator(new W3CTraceContextPropagator())
trace.setGlobalTracerProvider(
  new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
)

/** What a web framework does with each request. */
export async function inRequest<T>(name: string, work: (span: Span) => Promise<T>): Promise<T> {
  return await trace.getTracer('web').startActiveSpan(name, async (span) => {
    try {
      return await work(span)
    } finally {
      span.end()
    }
  })
}

export function spansOf(traceId: string): ReadableSpan[] {
  return exporter.getFinishedSpans().filter((span) => span.spanContext().traceId === traceId)
}

/** The spans as a tree, each below its parent, in the order in which they began. */
export function drawTrace(spans: readonly ReadableSpan[], parent?: string, depth = 0): string {
  return spans
    .filter((span) => span.parentSpanContext?.spanId === parent)
    .toSorted((a, b) => startOf(a) - startOf(b))
    .map((span) => {
      const children = drawTrace(spans, span.spanContext().spanId, depth + 1)
      return `${'  '.repeat(depth)}${span.name}\n${children}`
    })
    .join('')
}

function startOf({ startTime: [seconds, nanoseconds] }: ReadableSpan): number {
  return seconds * 1_000 + nanoseconds / 1e6
}
