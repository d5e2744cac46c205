// The metrics, registered with a meter. Counters are observed when they are collected, because adding to a counter of the
// SDK for each event costs far more than adding to a number.
import type { Attributes, Counter, Histogram, Meter, Observable } from '@opentelemetry/api'
import type { PublishResult } from '../../event/publish-result.ts'
import {
  BUCKETS,
  type CounterKey,
  COUNTERS,
  GAUGES,
  type HistogramKey,
  HISTOGRAMS,
  type Metric,
} from '../metrics.ts'
import { type Labels, OutboxMetrics } from '../outbox-metrics.ts'
import type { DeliveredEvent, Processed, SentBatch, WatchedOutbox } from '../telemetry.ts'
import { ATTRIBUTES, DURATION_BUCKETS, METRIC_NAMES, OPERATIONS } from './names.ts'
import { errorTypeOf, isFailure, topicOf } from './spans.ts'

export interface WatchParts {
  readonly meter: Meter
  readonly refreshMs: number
  /** Added to every value. */
  readonly attributes: Attributes
}

export function watchOutbox(outbox: WatchedOutbox, parts: WatchParts): void {
  const { meter, refreshMs } = parts
  const attributesOf = attributesByLabels(parts.attributes)
  const histograms = mapValues(HISTOGRAMS, (metric) =>
    meter.createHistogram(...definition(metric, { explicitBucketBoundaries: BUCKETS })),
  )
  const record = (key: HistogramKey, seconds: number, labels: Labels) =>
    histograms[key].record(seconds, attributesOf(labels))
  const metrics = new OutboxMetrics({ outbox, refreshMs, record })
  const counters = mapValues(COUNTERS, (metric) =>
    meter.createObservableCounter(...definition(metric)),
  )
  const gauges = mapValues(GAUGES, (metric) => meter.createObservableGauge(...definition(metric)))
  const all: Observable[] = [...Object.values(counters), ...Object.values(gauges)]
  meter.addBatchObservableCallback(async (result) => {
    for (const key of Object.keys(counters) as CounterKey[]) {
      for (const { labels, value } of metrics.counter(key)) {
        result.observe(counters[key], value, attributesOf(labels))
      }
    }
    const now = await metrics.gauges()
    for (const [key, figures] of now) {
      for (const { labels, value } of figures) {
        result.observe(gauges[key], value, attributesOf(labels))
      }
    }
  }, all)
}

/** The metrics of the messaging conventions, batch by batch and message by message. */
export class MessagingMeters {
  readonly #attributes: Attributes
  /** By their values, which are few: topics, and kinds of errors. */
  readonly #known = new Map<string, Attributes>()
  readonly #sent: Counter
  readonly #operation: Histogram
  readonly #process: Histogram

  constructor(meter: Meter, attributes: Attributes) {
    const advice = { explicitBucketBoundaries: DURATION_BUCKETS }
    this.#attributes = attributes
    this.#sent = meter.createCounter(METRIC_NAMES.sentMessages, {
      unit: '{message}',
      description: 'Number of messages that the producer attempted to send',
    })
    this.#operation = meter.createHistogram(METRIC_NAMES.operationDuration, {
      unit: 's',
      description: 'Duration of a send of a batch',
      advice,
    })
    this.#process = meter.createHistogram(METRIC_NAMES.processDuration, {
      unit: 's',
      description: 'Duration of handling a message',
      advice,
    })
  }

  sent(
    { system, publisher, events }: SentBatch,
    results: readonly PublishResult[],
    ms: number,
  ): void {
    const name = system ?? publisher
    const counts = new Map<Attributes, number>()
    for (const [n, { topic }] of events.entries()) {
      const result = results[n]!
      if (!result.ok && !isFailure(result)) continue
      const errorType = result.ok ? null : errorTypeOf(result.error)
      const about = this.#about(OPERATIONS.send, name, topic, errorType)
      counts.set(about, (counts.get(about) ?? 0) + 1)
    }
    for (const [about, count] of counts) this.#sent.add(count, about)
    const failure = results.find(isFailure)
    const errorType = failure ? errorTypeOf(failure.error) : null
    const about = this.#about(OPERATIONS.send, name, topicOf(events), errorType)
    this.#operation.record(ms / 1_000, about)
  }

  processed({ system, destination }: DeliveredEvent, processed: Processed, ms: number): void {
    const errorType = processed.outcome === 'failed' ? errorTypeOf(processed.error) : null
    const about = this.#about(OPERATIONS.process, system, destination, errorType)
    this.#process.record(ms / 1_000, about)
  }

  /** One object for the same values, as making it costs as much as the SDK does with it. */
  #about(
    operation: string,
    system: string | null,
    destination: string | null,
    errorType: string | null,
  ): Attributes {
    const key = `${operation} ${system ?? ''} ${errorType ?? ''} ${destination ?? ''}`
    let about = this.#known.get(key)
    if (!about) {
      about = {
        ...this.#attributes,
        [ATTRIBUTES.operationName]: operation,
        ...(system !== null && { [ATTRIBUTES.system]: system }),
        ...(destination !== null && { [ATTRIBUTES.destination]: destination }),
        ...(errorType !== null && { [ATTRIBUTES.errorType]: errorType }),
      }
      this.#known.set(key, about)
    }
    return about
  }
}

function definition<Advice extends object>(
  { name, unit, help }: Metric,
  advice?: Advice,
): [string, { unit: string; description: string; advice?: Advice }] {
  return [`aftercommit.${name}`, { unit, description: help, ...(advice && { advice }) }]
}

/** Each labels object is one for ever, and so are the attributes made of it. */
function attributesByLabels(added: Attributes): (labels: Labels) => Attributes {
  const known = new WeakMap<Labels, Attributes>()
  return (labels) => {
    let attributes = known.get(labels)
    if (!attributes) known.set(labels, (attributes = { ...labels, ...added }))
    return attributes
  }
}

function mapValues<Key extends string, From, To>(
  from: Readonly<Record<Key, From>>,
  to: (value: From) => To,
): Record<Key, To> {
  const entries = Object.entries<From>(from).map(([key, value]) => [key, to(value)])
  return Object.fromEntries(entries) as Record<Key, To>
}
