// The values of the metrics. Counters are plain numbers in memory that a scrape reads: an event costs a look-up in a map.
// Figures about the table are queried at a scrape, at most once in a while, and are left out while the database cannot be
// reached.
import { performance } from 'node:perf_hooks'
import { raceTimeout } from '../runtime/race-timeout.ts'
import type { CounterKey, GaugeKey, HistogramKey, Label } from './metrics.ts'
import type { WatchedOutbox, WatchedStats } from './telemetry.ts'

export type Labels = Readonly<Partial<Record<Label, string>>>

/** One value of a metric. Its labels are one object for as long as the process lives. */
export interface Figure {
  readonly labels: Labels
  readonly value: number
}

type Series = Map<string, { readonly labels: Labels; value: number }>
type RecordDuration = (metric: HistogramKey, seconds: number, labels: Labels) => void

/** A scrape waits no longer than this for the database. */
const PATIENCE_MS = 5_000

const NO_LABELS: Labels = Object.freeze({})

export interface OutboxMetricsParts {
  readonly outbox: WatchedOutbox
  /** How long what the table holds may be reported without asking again. */
  readonly refreshMs: number
  readonly record: RecordDuration
}

export class OutboxMetrics {
  readonly #parts: OutboxMetricsParts
  readonly #counters: Record<CounterKey, Series> = {
    saved: new Map(),
    published: new Map(),
    failed: new Map(),
    dead: new Map(),
    duplicates: new Map(),
    claimed: new Map(),
    errors: new Map(),
  }
  /** The label objects of histograms. */
  readonly #labels = new Map<string, Labels>()
  #asked: Promise<WatchedStats | null> | null = null
  #isAsking = false
  #askedAt = 0

  constructor(parts: OutboxMetricsParts) {
    this.#parts = parts
    const { events } = parts.outbox
    const { saved, published, failed, dead, duplicates, claimed, errors } = this.#counters
    events.on('event:saved', ({ event: { topic } }) => add(saved, topic, () => ({ topic })))
    events.on('event:published', ({ event: { topic }, path, latencyMs }) => {
      addByPath(published, topic, path)
      if (latencyMs !== null) this.#record('commitToAck', latencyMs, 'topic', topic)
    })
    events.on('event:failed', ({ event: { topic }, path }) => addByPath(failed, topic, path))
    events.on('event:dead', ({ event: { topic } }) => add(dead, topic, () => ({ topic })))
    events.on('event:duplicate', ({ event: { topic }, path }) => {
      addByPath(duplicates, topic, path)
    })
    events.on('step:done', ({ step, publisher, durationMs }) => {
      this.#record(step, durationMs, 'publisher', publisher)
    })
    events.on('poll:done', ({ publisher, claimed: count, durationMs }) => {
      add(claimed, publisher, () => ({ publisher }), count)
      this.#record('poll', durationMs, 'publisher', publisher)
    })
    events.on('error', ({ step }) => add(errors, step, () => ({ step })))
  }

  counter(key: CounterKey): Iterable<Figure> {
    return this.#counters[key].values()
  }

  /** What is so now, metric by metric. Without what the table holds if that cannot be read in time. */
  async gauges(): Promise<ReadonlyMap<GaugeKey, readonly Figure[]>> {
    const table = await this.#table()
    const activity = this.#parts.outbox.activity()
    const figures = new Map<GaugeKey, readonly Figure[]>()
    const set = (key: GaugeKey, value: number) => figures.set(key, [{ labels: NO_LABELS, value }])
    const perPublisher = (valueOf: (one: (typeof activity)[number]) => number) =>
      activity.map((one): Figure => {
        return { labels: this.#labelsOf('publisher', one.publisher), value: valueOf(one) }
      })
    figures.set(
      'inFlight',
      perPublisher(({ inFlight }) => inFlight),
    )
    figures.set(
      'circuits',
      perPublisher(({ unreachable }) => unreachable.length),
    )
    set('reachable', table === null ? 0 : 1)
    if (table === null) return figures
    set('pending', table.pending.count)
    set('scheduled', table.scheduled.count)
    set('due', table.due)
    set('held', table.held)
    set('deadLetters', table.dead.count)
    set('paused', table.paused.length)
    set('oldest', Math.max(0, table.lagMs ?? 0) / 1_000)
    return figures
  }

  async #table(): Promise<WatchedStats | null> {
    const now = performance.now()
    const isOld = this.#asked === null || now - this.#askedAt >= this.#parts.refreshMs
    // While a query is under way, no second one begins.
    if (isOld && !this.#isAsking) {
      this.#askedAt = now
      this.#asked = this.#ask()
    }
    const answer = await raceTimeout(this.#asked!, PATIENCE_MS)
    return answer === 'late' ? null : answer
  }

  async #ask(): Promise<WatchedStats | null> {
    this.#isAsking = true
    try {
      return await this.#parts.outbox.stats()
    } catch {
      return null
    } finally {
      this.#isAsking = false
    }
  }

  #record(key: HistogramKey, ms: number, label: Label, value: string | null): void {
    this.#parts.record(key, ms / 1_000, value === null ? NO_LABELS : this.#labelsOf(label, value))
  }

  #labelsOf(label: Label, value: string): Labels {
    const name = `${label} ${value}`
    let labels = this.#labels.get(name)
    if (!labels) this.#labels.set(name, (labels = Object.freeze({ [label]: value })))
    return labels
  }
}

function addByPath(series: Series, topic: string, path: string): void {
  add(series, `${path} ${topic}`, () => ({ topic, path }))
}

function add(series: Series, name: string, labels: () => Labels, count = 1): void {
  const figure = series.get(name)
  if (figure) figure.value += count
  else series.set(name, { labels: Object.freeze(labels()), value: count })
}
