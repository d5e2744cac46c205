// Spans where there is no broker, where another span is active already, and where something fails.
import {
  context,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
} from '@opentelemetry/api'
import { expect, it } from 'vitest'
import { otel } from '../../../src/telemetry/otel/otel.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, failedAs, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { useFixture } from '../../support/fixture.ts'
import { useInbox } from '../../support/inbox.ts'
import { useOpenTelemetry } from '../../support/open-telemetry.ts'
import { nextEvent } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
const { inbox: createInbox } = useInbox(fixture)
const { spans, spanNamed, request } = useOpenTelemetry()

const SECRET = 'the payload is 4711'

it('runs handlers inside the send, in the trace of the request', async () => {
  const seen: (string | undefined)[] = []
  const handlers = {
    OrderCompleted: () => void seen.push(trace.getActiveSpan()?.spanContext().spanId),
  }
  const outbox = fixture.handling(handlers, { telemetry: otel() })
  await outbox.start()
  const published = nextEvent(outbox.events, 'event:published')
  await request(() => outbox.withOutbox(async (_, emit) => emit(newEvent())))
  await published
  const [send, begun] = [await spanNamed('send order'), await spanNamed('request')]
  expect(seen).toEqual([send.spanContext().spanId])
  expect(send.spanContext().traceId).toBe(begun.spanContext().traceId)
  expect(send.attributes).toMatchObject({ 'messaging.system.name': 'handlers' })
})

it('links a process to its event where a span of another trace is active', async () => {
  const inbox = createInbox({ telemetry: otel() })
  const [traceId, spanId] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331']
  const headers = { traceparent: `00-${traceId}-${spanId}-01`, tracestate: 'own=1' }
  await request(() => inbox.once({ id: 'e1', headers }, () => {}))
  const [process, begun] = [await spanNamed('process'), await spanNamed('request')]
  expect(process.kind).toBe(SpanKind.CONSUMER)
  expect(process.parentSpanContext?.spanId).toBe(begun.spanContext().spanId)
  expect(process.links).toMatchObject([{ context: { traceId, spanId } }])
  expect(process.links[0]!.context.traceState?.serialize()).toBe('own=1')
})

it('distinguishes a duplicate from an event that is handled', async () => {
  const inbox = createInbox({ telemetry: otel() })
  for (let delivery = 0; delivery < 2; delivery += 1) await inbox.once({ id: 'e1' }, () => {})
  await spanNamed('process')
  const outcomes = spans().map(({ attributes }) => attributes['aftercommit.inbox.outcome'])
  expect(outcomes).toEqual(['handled', 'duplicate'])
})

it('records the kind of an error, and never its message', async () => {
  const outbox = fixture.outbox({
    publisher: scriptedPublisher(() => {
      return { ok: false, kind: 'permanent', error: new TypeError(SECRET) }
    }),
    telemetry: otel(),
  })
  await outbox.start()
  const died = nextEvent(outbox.events, 'event:dead')
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ payload: SECRET })))
  await died
  const inbox = createInbox({ telemetry: otel() })
  const work = () => Promise.reject(new RangeError(SECRET))
  await expect(inbox.once({ id: 'e1', payload: SECRET }, work)).rejects.toThrow(SECRET)
  for (const [name, type] of [
    ['send order', 'TypeError'],
    ['process', 'RangeError'],
  ] as const) {
    const span = await spanNamed(name)
    expect(span.status).toEqual({ code: SpanStatusCode.ERROR })
    expect(span.attributes).toMatchObject({ 'error.type': type })
  }
  const recorded = spans().map(({ name, attributes, status, events }) => {
    return { name, attributes, status, events }
  })
  expect(JSON.stringify(recorded)).not.toContain('4711')
})

it('hands on the context of a request that is not sampled, without a span of its own', async () => {
  const outbox = fixture.outbox({
    publisher: scriptedPublisher(acked),
    telemetry: otel(),
  })
  const unsampled = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }
  const inside = trace.setSpanContext(ROOT_CONTEXT, { ...unsampled, traceFlags: TraceFlags.NONE })
  await context.with(inside, () => outbox.withOutbox(async (_, emit) => emit(newEvent())))
  await outbox.pollOnce()
  const [row] = await fixture.sql`select headers, status from outbox`
  const traceparent = `00-${unsampled.traceId}-${unsampled.spanId}-00`
  expect(row).toEqual({ status: 'published', headers: { traceparent } })
  expect(spans()).toEqual([])
})

it('does not count an event as failed that was held back', async () => {
  const publisher = scriptedPublisher(() => failedAs('held'))
  const outbox = fixture.outbox({ publisher, telemetry: otel() })
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await outbox.pollOnce()
  expect((await spanNamed('send order')).status).toEqual({ code: SpanStatusCode.UNSET })
})
