// aftercommit/otel: traces and metrics through @opentelemetry/api. Without a registered SDK every call ends in the API,
// which does nothing.
import { performance } from 'node:perf_hooks'
import {
  type Attributes,
  type MeterProvider,
  metrics as metricsApi,
  ROOT_CONTEXT,
  trace,
  type TracerProvider,
} from '@opentelemetry/api'
import {
  rejectUnknown,
  requireBoolean,
  requireDuration,
  requireMethods,
} from '../../checks/checks.ts'
import { type Duration, show } from '../../checks/duration.ts'
import { OutboxOptionsError } from '../../errors.ts'
import type { PublishResult } from '../../event/publish-result.ts'
import type { End, Telemetry } from '../telemetry.ts'
import { MessagingMeters, watchOutbox } from './meters.ts'
import { SCHEMA_URL } from './names.ts'
import { Spans } from './spans.ts'
import { runSilenced } from './trace-context.ts'

export interface OtelOptions {
  /** Whether spans are made, and the trace context of the request is saved with each event. @default true */
  traces?: boolean
  /** Whether the metrics of the outbox are reported. @default true */
  metrics?: boolean
  /**
   * Whether the metrics of the messaging conventions are reported too. Turn them off where the instrumentation of the
   * broker's client reports them already. @default true
   */
  messagingMetrics?: boolean
  /** Whether the baggage of the request travels with each event, as the header `baggage`. @default false */
  baggage?: boolean
  /** How long what the table holds may be reported without asking the database again. @default '10s' */
  refresh?: Duration
  /** Added to every metric, such as `{ outbox: 'billing' }`. Needed to tell two outboxes of a process apart. @default none */
  attributes?: Readonly<Record<string, string>>
  /** @default the global one */
  tracerProvider?: TracerProvider
  /** @default the global one */
  meterProvider?: MeterProvider
}

const KNOWN = [
  'traces',
  'metrics',
  'messagingMetrics',
  'baggage',
  'refresh',
  'attributes',
  'tracerProvider',
  'meterProvider',
]

const SCOPE = 'aftercommit'

/** For the option `telemetry` of createOutbox() and createInbox(). */
export function otel(options: OtelOptions = {}): Telemetry {
  rejectUnknown('otel()', options, KNOWN)
  const { tracerProvider, meterProvider } = options
  const hasTraces = requireBoolean('traces', options.traces ?? true)
  const hasMetrics = requireBoolean('metrics', options.metrics ?? true)
  const hasMessaging = requireBoolean('messagingMetrics', options.messagingMetrics ?? true)
  const baggage = requireBoolean('baggage', options.baggage ?? false)
  const refreshMs = requireDuration('refresh', options.refresh ?? '10s', 0)
  const attributes = requireAttributes(options.attributes)
  if (tracerProvider)
    requireMethods('tracerProvider', tracerProvider, ['getTracer'], 'a TracerProvider')
  if (meterProvider) requireMethods('meterProvider', meterProvider, ['getMeter'], 'a MeterProvider')

  const scope = { schemaUrl: SCHEMA_URL }
  const tracer = (tracerProvider ?? trace).getTracer(SCOPE, undefined, scope)
  // Global meters, unlike tracers, do nothing for ever if the SDK registers later. So they are made with the outbox.
  const meter = () => (meterProvider ?? metricsApi).getMeter(SCOPE, undefined, scope)
  const spans = hasTraces ? new Spans(tracer, baggage) : null
  let meters: MessagingMeters | null = null
  const messaging = () => {
    if (!hasMetrics || !hasMessaging) return null
    return (meters ??= new MessagingMeters(meter(), attributes))
  }
  let isWatching = false

  return {
    watch(outbox) {
      if (isWatching) {
        throw new OutboxOptionsError(
          'this otel() is the telemetry of another outbox, and their metrics would be mixed; call otel() for each, with different attributes',
        )
      }
      isWatching = true
      if (hasMetrics) watchOutbox(outbox, { meter: meter(), refreshMs, attributes })
    },
    ...(spans && { create: (event) => spans.create(event) }),
    send(batch, publish) {
      const begunAt = performance.now()
      const end = spans ? spans.send(batch, publish) : sendWithoutSpan(batch.system, publish)
      return (results) => {
        end?.(results)
        messaging()?.sent(batch, results, performance.now() - begunAt)
      }
    },
    process(delivered, handle) {
      const begunAt = performance.now()
      const end = spans?.process(delivered, handle)
      if (!spans) handle()
      return (processed) => {
        end?.(processed)
        messaging()?.processed(delivered, processed, performance.now() - begunAt)
      }
    },
  }
}

// The client's instrumentation would replace a trace context that the application gave the event.
function sendWithoutSpan(
  system: string | null,
  publish: () => void,
): End<readonly PublishResult[]> {
  if (system === null) publish()
  else runSilenced(ROOT_CONTEXT, publish)
  return undefined
}

function requireAttributes(attributes: unknown = {}): Attributes {
  const isRecord = typeof attributes === 'object' && attributes !== null
  if (isRecord && Object.values(attributes).every((value) => typeof value === 'string')) {
    return { ...attributes }
  }
  throw new OutboxOptionsError(
    `attributes must be an object of strings by name, got ${show(attributes)}`,
  )
}
