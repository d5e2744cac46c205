// aftercommit/prometheus: the same metrics through prom-client, without OpenTelemetry. Everything is read when Prometheus
// asks; only durations are recorded as they happen.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Counter, Gauge, Histogram, register, type Registry } from 'prom-client'
import { rejectUnknown, requireDuration } from '../checks/checks.ts'
import { type Duration, show } from '../checks/duration.ts'
import { OutboxOptionsError } from '../errors.ts'
import {
  BUCKETS,
  type CounterKey,
  COUNTERS,
  type GaugeKey,
  GAUGES,
  type HistogramKey,
  HISTOGRAMS,
  type Metric,
} from './metrics.ts'
import { type Labels, OutboxMetrics } from './outbox-metrics.ts'
import type { WatchedOutbox } from './telemetry.ts'

export interface PrometheusOptions {
  /** Where the metrics are registered. @default prom-client's global registry */
  registry?: Registry
  /** What their names begin with: letters, digits and `_`. @default 'aftercommit_' */
  prefix?: string
  /** How long what the table holds may be reported without asking the database again. @default '10s' */
  refresh?: Duration
}

export interface PrometheusMetrics {
  readonly registry: Registry
  /** Serves the registry as text, for node:http and what is built on it. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void
}

const DEFAULT_PREFIX = 'aftercommit_'

/** Registers the metrics of an outbox. Call it once for each outbox, before or after start(). */
export function prometheusMetrics(
  outbox: WatchedOutbox,
  options: PrometheusOptions = {},
): PrometheusMetrics {
  rejectUnknown('prometheusMetrics()', options, ['registry', 'prefix', 'refresh'])
  const { registry = register, prefix = DEFAULT_PREFIX } = options
  if (typeof prefix !== 'string' || !/^[a-z_]\w*$/i.test(prefix)) {
    throw new OutboxOptionsError(
      `prefix must begin with a letter and consist of letters, digits and _, got ${show(prefix)}`,
    )
  }
  const refreshMs = requireDuration('refresh', options.refresh ?? '10s', 0)
  refuseSecond(registry, prefix)
  const definition = (metric: Metric, suffix = '') => {
    const name = prometheusName(metric, prefix) + suffix
    return { name, help: metric.help, labelNames: [...metric.labels], registers: [] }
  }
  const durations = new Durations(registry, definition)
  const record = (key: HistogramKey, seconds: number, labels: Labels) =>
    durations.observe(key, seconds, labels)
  const metrics = new OutboxMetrics({ outbox, refreshMs, record })

  for (const key of Object.keys(COUNTERS) as CounterKey[]) {
    const counter = new Counter({
      ...definition(COUNTERS[key], '_total'),
      collect() {
        this.reset()
        for (const { labels, value } of metrics.counter(key)) this.inc({ ...labels }, value)
      },
    })
    registry.registerMetric(counter)
  }
  for (const key of Object.keys(GAUGES) as GaugeKey[]) {
    const gauge = new Gauge({
      ...definition(GAUGES[key]),
      async collect() {
        const figures = (await metrics.gauges()).get(key) ?? []
        // reset() would leave a 0 where nothing is known.
        if (GAUGES[key].labels.length > 0) this.reset()
        else this.remove()
        for (const { labels, value } of figures) this.set({ ...labels }, value)
      },
    })
    registry.registerMetric(gauge)
  }
  return { registry, handler: handlerOf(registry) }
}

/** As OpenTelemetry's exporters for Prometheus name it, but for the `_total` of counters. */
export function prometheusName({ name, unit }: Metric, prefix = DEFAULT_PREFIX): string {
  return prefix + name.replaceAll('.', '_') + (unit === 's' ? '_seconds' : '')
}

/** Keeps the child of each series: to look one up by its labels costs more than to observe. */
class Durations {
  readonly #histograms = new Map<HistogramKey, Histogram>()
  readonly #children = new Map<HistogramKey, Map<Labels, Histogram.Internal<string>>>()

  constructor(
    registry: Registry,
    definition: (metric: Metric) => { name: string; help: string; labelNames: string[] },
  ) {
    for (const key of Object.keys(HISTOGRAMS) as HistogramKey[]) {
      const histogram = new Histogram({ ...definition(HISTOGRAMS[key]), buckets: BUCKETS })
      registry.registerMetric(histogram)
      this.#histograms.set(key, histogram)
      this.#children.set(key, new Map())
    }
  }

  observe(key: HistogramKey, seconds: number, labels: Labels): void {
    const children = this.#children.get(key)!
    let child = children.get(labels)
    if (!child) children.set(labels, (child = this.#histograms.get(key)!.labels({ ...labels })))
    child.observe(seconds)
  }
}

function refuseSecond(registry: Registry, prefix: string): void {
  const name = prometheusName(GAUGES.pending, prefix)
  if (!registry.getSingleMetric(name)) return
  throw new OutboxOptionsError(
    `the registry already has '${name}', the metric of another outbox; give this one another prefix or a registry of its own`,
  )
}

function handlerOf(registry: Registry): PrometheusMetrics['handler'] {
  return (_request, response) => void serve(registry, response)
}

async function serve(registry: Registry, response: ServerResponse): Promise<void> {
  try {
    const text = await registry.metrics()
    response.writeHead(200, { 'content-type': registry.contentType })
    response.end(text)
  } catch {
    // Another metric of the registry has thrown.
    response.writeHead(500)
    response.end()
  }
}
