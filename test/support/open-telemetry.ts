// A real OpenTelemetry SDK whose spans and metrics stay in memory. Registered for the whole process, so a test file that
// uses it has no test without an SDK.
import { context, metrics, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  CompositePropagator,
  W3CBaggagePropagator,
  W3CTraceContextPropagator,
} from '@opentelemetry/core'
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { afterEach } from 'vitest'
import { waitUntil } from './timing/wait-until.ts'

/** Collected when a test asks. */
class AskedReader extends MetricReader {
  protected override async onShutdown(): Promise<void> {}
  protected override async onForceFlush(): Promise<void> {}
}

export type OpenTelemetry = {
  readonly tracerProvider: BasicTracerProvider
  readonly spans: () => ReadableSpan[]
  /** The ended span of that name, as soon as there is one. */
  readonly spanNamed: (name: string) => Promise<ReadableSpan>
  /** Runs the work inside a span of its own, as a web framework does with a request. */
  readonly request: <T>(work: () => Promise<T>) => Promise<T>
  /** `name{label=value,...}` by value; of histograms the count. */
  readonly metrics: () => Promise<Record<string, number>>
}

export function useOpenTelemetry(): OpenTelemetry {
  const exporter = new InMemorySpanExporter()
  const tracerProvider = new BasicTracerProvider({
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  })
  const reader = new AskedReader()
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  propagation.setGlobalPropagator(
    new CompositePropagator({
      propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()],
    }),
  )
  trace.setGlobalTracerProvider(tracerProvider)
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }))
  afterEach(() => exporter.reset())
  const spans = () => exporter.getFinishedSpans()
  return {
    tracerProvider,
    spans,
    spanNamed: (name) =>
      waitUntil(() => spans().find((span) => span.name === name), {
        message: () =>
          `a span '${name}' among ${spans()
            .map((span) => span.name)
            .join()}`,
      }),
    request: (work) =>
      tracerProvider.getTracer('app').startActiveSpan('request', async (span) => {
        try {
          return await work()
        } finally {
          span.end()
        }
      }),
    async metrics() {
      const { resourceMetrics, errors } = await reader.collect()
      if (errors.length > 0) throw errors[0]
      const points = resourceMetrics.scopeMetrics.flatMap(({ metrics: all }) =>
        all.flatMap(({ descriptor, dataPoints }) =>
          dataPoints.map(({ attributes, value }) => {
            const number = typeof value === 'number' ? value : value.count
            return [seriesOf(descriptor.name, attributes), number] as const
          }),
        ),
      )
      return Object.fromEntries(points)
    },
  }
}

export function seriesOf(name: string, labels: object): string {
  const texts = Object.entries(labels).map(([label, value]) => `${label}=${String(value)}`)
  return texts.length === 0 ? name : `${name}{${texts.toSorted().join()}}`
}
