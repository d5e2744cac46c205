// npm run bench:telemetry: what counting and tracing cost at 64 units of work at once. All kinds take turns in one process
// on one Postgres and one Kafka, in short slices, so that whatever the machine does meanwhile meets them all. Each unit of
// work runs in a request that is traced already, in every kind. `off` takes part twice: how far the two are apart is the
// noise of the figures.
import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { context, ROOT_CONTEXT, SpanKind, trace, TraceFlags, type Tracer } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { ExportResultCode } from '@opentelemetry/core'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  AlwaysOnSampler,
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base'
import { Registry } from 'prom-client'
import { kafkaPublisher } from '../dist/publishers/kafka/kafka-publisher.js'
import { otel } from '../dist/telemetry/otel/otel.js'
import { prometheusMetrics } from '../dist/telemetry/prometheus.js'
import { closeLater, runToVerdict, say } from '../test/support/run/run-to-verdict.ts'
import { startKafka } from '../test/support/servers/kafka-server.ts'
import { startPostgres } from '../test/support/servers/postgres-server.ts'
import { createTopic } from '../test/support/servers/topic-reader.ts'
import { Acks } from './acks.ts'
import { makeAftercommit, type Watched } from './aftercommit.ts'
import type { Contender, Stage } from './contender.ts'
import { measuredKafka } from './kafkajs.ts'
import { runLoad } from './load.ts'
import { median } from './spread.ts'

const USAGE = 'npm run bench:telemetry -- [--rounds 40] [--units 1500]'
const LOAD = { concurrency: 64, eventsPerUnit: 1, payloadBytes: 1_000 }
const WARM_UP_UNITS = 6_000
/** As often as a busy Prometheus. */
const SCRAPE_MS = 5_000

interface Turn {
  readonly perSecond: number
  readonly cpuUs: number
}

/** The SDK does all its work, and what it exports goes nowhere. */
const nowhere: SpanExporter = {
  export: (_, done) => done({ code: ExportResultCode.SUCCESS }),
  shutdown: async () => {},
}

function counting() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis: SCRAPE_MS,
    exportTimeoutMillis: SCRAPE_MS,
  })
  const forget = setInterval(() => exporter.reset(), SCRAPE_MS)
  closeLater(async () => clearInterval(forget))
  return new MeterProvider({ readers: [reader] })
}

function tracing() {
  return new BasicTracerProvider({
    sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    spanProcessors: [new BatchSpanProcessor(nowhere)],
  })
}

interface Kind extends Watched {
  /** One in how many requests is sampled. */
  readonly sampledIn: number
  /** Begins and ends a span of the application's own in each request. */
  readonly ownSpan?: Tracer
}

/** Runs the unit of work as the handler of a traced request does. */
function inRequests(contender: Contender, { sampledIn, ownSpan }: Kind): Contender {
  let requests = 0
  return {
    ...contender,
    unit(events, committed) {
      requests += 1
      const request = {
        traceId: randomBytes(16).toString('hex'),
        spanId: randomBytes(8).toString('hex'),
        traceFlags: requests % sampledIn === 0 ? TraceFlags.SAMPLED : TraceFlags.NONE,
      }
      const inside = trace.setSpanContext(ROOT_CONTEXT, request)
      return context.with(inside, () => {
        ownSpan?.startSpan('order', { kind: SpanKind.PRODUCER }).end()
        return contender.unit(events, committed)
      })
    },
  }
}

function kinds(): Record<string, Kind> {
  const registry = new Registry()
  return {
    off: { sampledIn: 100 },
    'off again': { sampledIn: 100 },
    'otel metrics': {
      sampledIn: 100,
      telemetry: otel({ traces: false, meterProvider: counting() }),
    },
    prometheus: {
      sampledIn: 100,
      watch(outbox) {
        prometheusMetrics(outbox, { registry })
        const scrape = setInterval(() => void registry.metrics(), SCRAPE_MS)
        closeLater(async () => clearInterval(scrape))
      },
    },
    'otel traces, 1 % sampled': {
      sampledIn: 100,
      telemetry: otel({ metrics: false, tracerProvider: tracing() }),
    },
    'otel traces, all sampled': {
      sampledIn: 1,
      telemetry: otel({ metrics: false, tracerProvider: tracing() }),
    },
    'off, with one span of the application for each unit, all sampled': {
      sampledIn: 1,
      ownSpan: tracing().getTracer('application'),
    },
  }
}

async function measure({ rounds, units }: { rounds: number; units: number }) {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  const server = await startPostgres({ settings: { shared_buffers: '1GB', max_wal_size: '8GB' } })
  closeLater(() => server.stop())
  const kafka = await startKafka({ javaFlags: ['-Xms1g', '-Xmx1g', '-XX:+UseG1GC'] })
  closeLater(() => kafka.stop())
  const topic = 'bench_telemetry'
  await createTopic(kafka.directBrokers, topic, 6)
  const acks = new Acks()
  const stage: Stage = {
    databaseUrl: server.url,
    poolSize: 20,
    fresh: true,
    topic,
    kafka: measuredKafka(kafka.brokers, acks),
    brokers: kafka.brokers,
    acks,
    tuned: false,
  }
  const contenders = new Map<string, Contender>()
  for (const [name, kind] of Object.entries(kinds())) {
    const publisher = kafkaPublisher({ kafka: stage.kafka })
    const contender = inRequests(await makeAftercommit(stage, publisher, kind), kind)
    await contender.start()
    closeLater(() => contender.stop())
    contenders.set(name, contender)
  }
  const names = [...contenders.keys()]
  const turns = new Map(names.map((name) => [name, [] as Turn[]]))
  let firstId = 0
  const run = async (name: string, count: number): Promise<Turn> => {
    const before = process.cpuUsage()
    const load = { ...LOAD, units: count, firstId }
    const { perSecond } = await runLoad(contenders.get(name)!, acks, load, true)
    firstId += count
    const { user, system } = process.cpuUsage(before)
    return { perSecond, cpuUs: (user + system) / count }
  }
  for (const name of names) await run(name, WARM_UP_UNITS / names.length)
  for (let round = 0; round < rounds; round += 1) {
    for (const [n] of names.entries()) {
      const name = names[(round + n) % names.length]!
      turns.get(name)!.push(await run(name, units))
    }
    say(`round ${round + 1} of ${rounds}`)
  }
  return Object.fromEntries(
    names.map((name) => [name, compare(turns.get(name)!, turns.get('off')!)]),
  )
}

/** Round by round with `off`, and the middle of that. */
function compare(own: readonly Turn[], off: readonly Turn[]) {
  const toOff = (figure: keyof Turn) => median(own.map((turn, n) => turn[figure] / off[n]![figure]))
  return {
    perSecond: Math.round(median(own.map(({ perSecond }) => perSecond))),
    cpuUsPerEvent: Math.round(median(own.map(({ cpuUs }) => cpuUs))),
    throughputToOff: toOff('perSecond').toFixed(3),
    cpuToOff: toOff('cpuUs').toFixed(3),
  }
}

await runToVerdict({
  usage: USAGE,
  parse(args) {
    const options = { rounds: { type: 'string' }, units: { type: 'string' } } as const
    const { values } = parseArgs({ args: [...args], options })
    return { rounds: Number(values.rounds ?? 40), units: Number(values.units ?? 1_500) }
  },
  run: measure,
  isGood: () => true,
})
