// One trace from the request to the consumer, by a real SDK, a real Postgres and a real Kafka: whichever process sends the
// event, and whatever else in the process traces Kafka.
import { createRequire } from 'node:module'
import { context, propagation, ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api'
import { KafkaJsInstrumentation } from '@opentelemetry/instrumentation-kafkajs'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base'
import type { Kafka } from 'kafkajs'
import { afterAll, afterEach, expect, it } from 'vitest'
import type { Inbox } from '../../../src/inbox/inbox.ts'
import type { Outbox } from '../../../src/index.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import { otel } from '../../../src/telemetry/otel/otel.ts'
import { openTopic, readAll } from '../../support/conformance/kafka-conformance.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { describeWithKafka, kafkaBrokers, quietKafka, useFixture } from '../../support/fixture.ts'
import { useInbox } from '../../support/inbox.ts'
import { useOpenTelemetry } from '../../support/open-telemetry.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
const { inbox: createInbox } = useInbox(fixture)
const { spans, spanNamed, request } = useOpenTelemetry()

const idsOf = (span: ReadableSpan) => {
  const { traceId, spanId } = span.spanContext()
  return { traceId, spanId }
}
const parentOf = (span: ReadableSpan) => {
  const { traceId, spanId } = span.parentSpanContext ?? {}
  return { traceId, spanId }
}
const linksOf = (span: ReadableSpan) =>
  span.links.map(({ context: { traceId, spanId } }) => ({ traceId, spanId }))
const traceparentOf = (span: ReadableSpan) => {
  const { traceId, spanId } = span.spanContext()
  return `00-${traceId}-${spanId}-01`
}

describeWithKafka('a trace', () => {
  const consumers: { disconnect(): Promise<void> }[] = []
  afterEach(async () => {
    await Promise.all(consumers.splice(0).map((consumer) => consumer.disconnect()))
  })

  const open = (kafka: Kafka, options: Parameters<typeof otel>[0] = {}) =>
    fixture.outbox({ publisher: kafkaPublisher({ kafka }), telemetry: otel(options) })

  const emitInRequest = async (outbox: Outbox<typeof fixture.db>, topic: string, overrides = {}) =>
    await request(() =>
      outbox.withOutbox(async (_, emit) => {
        await Promise.resolve()
        return emit(newEvent({ topic, ...overrides }))
      }),
    )

  /** Handles what arrives on the topic, as a service would. */
  async function consume(kafka: Kafka, topic: string, inbox: Inbox<typeof fixture.db>) {
    const consumer = kafka.consumer({ groupId: uniqueName('traced'), maxWaitTimeInMs: 200 })
    consumers.push(consumer)
    const handled: (string | undefined)[] = []
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({
      eachMessage: async (payload) => {
        await inbox.once(payload, () => {
          handled.push(trace.getActiveSpan()?.spanContext().spanId)
        })
      },
    })
    return handled
  }

  it('leads from the request over create and send to process in the inbox', async () => {
    const topic = await openTopic()
    const kafka = quietKafka(kafkaBrokers())
    const outbox = open(kafka)
    await outbox.start()
    const id = await emitInRequest(outbox, topic)
    const handled = await consume(kafka, topic, createInbox({ telemetry: otel() }))
    const process = await spanNamed(`process ${topic}`)
    const create = await spanNamed(`create ${topic}`)
    const send = await spanNamed(`send ${topic}`)
    const begun = await spanNamed('request')

    expect(parentOf(create)).toEqual(idsOf(begun))
    expect(parentOf(send)).toEqual(idsOf(create))
    expect(linksOf(send)).toEqual([idsOf(create)])
    expect(parentOf(process)).toEqual(idsOf(create))
    expect(handled).toEqual([idsOf(process).spanId])
    const kinds = [create, send, process].map(({ kind }) => kind)
    expect(kinds).toEqual([SpanKind.PRODUCER, SpanKind.CLIENT, SpanKind.CONSUMER])
    const [message] = await readAll(topic)
    expect(message!.headers['traceparent']).toBe(traceparentOf(create))
    expect(create.attributes).toEqual({
      'messaging.system.name': 'kafka',
      'messaging.operation.name': 'create',
      'messaging.operation.type': 'create',
      'messaging.destination.name': topic,
      'messaging.message.id': id,
      'aftercommit.event.type': 'OrderCompleted',
    })
    expect(send.attributes).toEqual({
      'messaging.system.name': 'kafka',
      'messaging.operation.name': 'send',
      'messaging.operation.type': 'send',
      'messaging.destination.name': topic,
      'messaging.destination.partition.id': String(message!.partition),
      'messaging.message.id': id,
      'kafka.offset': Number(message!.offset),
      'aftercommit.publisher': 'kafka',
      'aftercommit.path': 'immediate',
    })
    expect(process.attributes).toEqual({
      'messaging.system.name': 'kafka',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.destination.name': topic,
      'messaging.message.id': id,
      'aftercommit.event.type': 'OrderCompleted',
      'aftercommit.inbox.consumer': 'billing',
      'aftercommit.inbox.outcome': 'handled',
    })
  })

  it('reaches the fallback of another outbox, whose batch is linked to each of its events', async () => {
    const topic = await openTopic()
    const kafka = quietKafka(kafkaBrokers())
    const saving = open(kafka)
    await emitInRequest(saving, topic)
    await emitInRequest(saving, topic)
    await open(kafka).pollOnce()
    const send = await spanNamed(`send ${topic}`)
    const created = spans().filter(({ name }) => name === `create ${topic}`)
    expect(created).toHaveLength(2)
    expect(new Set(created.map((span) => idsOf(span).traceId)).size).toBe(2)
    expect(linksOf(send)).toEqual(created.map(idsOf))
    expect(send.parentSpanContext).toBeUndefined()
    expect(send.attributes).toMatchObject({
      'messaging.batch.message_count': 2,
      'aftercommit.path': 'fallback',
    })
    const arrived = (await readAll(topic)).map(({ headers }) => String(headers['traceparent']))
    expect(arrived.toSorted()).toEqual(created.map(traceparentOf).toSorted())
  })

  it('keeps the trace context that the application gave the event', async () => {
    const topic = await openTopic()
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const outbox = open(quietKafka(kafkaBrokers()))
    await outbox.start()
    await emitInRequest(outbox, topic, { traceparent, headers: { tracestate: 'own=1' } })
    const send = await spanNamed(`send ${topic}`)
    expect(linksOf(send)).toEqual([
      { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' },
    ])
    expect(spans().map(({ name }) => name)).not.toContain(`create ${topic}`)
    const [message] = await readAll(topic)
    expect(message!.headers).toMatchObject({ traceparent, tracestate: 'own=1' })
  })

  it('takes the baggage of the request along if asked, and not otherwise', async () => {
    const topic = await openTopic()
    const kafka = quietKafka(kafkaBrokers())
    const entries = propagation.createBaggage({ tenant: { value: 'acme' } })
    const active = propagation.setBaggage(ROOT_CONTEXT, entries)
    for (const baggage of [true, false]) {
      await context.with(active, () => emitInRequest(open(kafka, { baggage }), topic))
    }
    await open(kafka).pollOnce()
    const arrived = (await readAll(topic)).map(({ headers }) => headers['baggage'] ?? 'none')
    expect(arrived.toSorted()).toEqual(['none', 'tenant=acme'])
  })

  it('is not sampled anew, and costs no span, where the request was not sampled', async () => {
    const topic = await openTopic()
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00'
    const outbox = open(quietKafka(kafkaBrokers()))
    await outbox.start()
    const published = nextEvent(outbox.events, 'event:published')
    await outbox.withOutbox(async (_, emit) => emit(newEvent({ topic, traceparent })))
    await published
    expect(spans()).toEqual([])
  })

  describeInstrumented(open, emitInRequest, consume)
})

type Open = (kafka: Kafka) => Outbox<typeof fixture.db>
type EmitInRequest = (outbox: Outbox<typeof fixture.db>, topic: string) => Promise<string>
type Consume = (
  kafka: Kafka,
  topic: string,
  inbox: Inbox<typeof fixture.db>,
) => Promise<(string | undefined)[]>

// Last, because the instrumentation changes kafkajs for the rest of the process.
function describeInstrumented(open: Open, emitInRequest: EmitInRequest, consume: Consume): void {
  const instrumentation = new KafkaJsInstrumentation({ enabled: false })
  afterAll(() => instrumentation.disable())

  it('has one send and one process where kafkajs is instrumented too, and keeps its context', async () => {
    const topic = await openTopic()
    instrument(instrumentation)
    const kafka = quietKafka(kafkaBrokers())
    const outbox = open(kafka)
    await outbox.start()
    await emitInRequest(outbox, topic)
    await consume(kafka, topic, createInbox({ telemetry: otel() }))
    const create = await spanNamed(`create ${topic}`)
    const once = await spanNamed('once billing')
    const process = await waitUntil(
      () => spans().find(({ name }) => name.startsWith('process') || name.endsWith('process')),
      {
        message: () =>
          `process among ${spans()
            .map(({ name }) => name)
            .join()}`,
      },
    )
    const names = spans().map(({ name }) => name)
    expect(names.filter((name) => name.includes('send'))).toEqual([`send ${topic}`])
    expect(names.filter((name) => name.includes('process'))).toHaveLength(1)
    expect(process.instrumentationScope.name).toBe('@opentelemetry/instrumentation-kafkajs')
    expect(parentOf(process)).toEqual(idsOf(create))
    expect(parentOf(once)).toEqual(idsOf(process))
    expect(once.kind).toBe(SpanKind.INTERNAL)
    const [message] = await readAll(topic)
    expect(message!.headers['traceparent']).toBe(traceparentOf(create))
  })
}

/** What the SDK's hooks do when kafkajs is required for the first time, which this process has done long ago. */
function instrument(instrumentation: KafkaJsInstrumentation): void {
  const module = createRequire(import.meta.url)('kafkajs') as object
  const hooks = instrumentation as unknown as { init(): { patch(exports: object): void } }
  hooks.init().patch(module)
}
