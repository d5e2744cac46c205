import { expect, it } from 'vitest'
import { resolveEnvelope } from '../../../src/envelope/envelope.ts'
import { messageHeaders } from '../../../src/envelope/wire-message.ts'
import { prepareEvent } from '../../../src/event/prepare.ts'
import { cloudEvents } from '../../../src/index.ts'
import { lenientRules, newEvent, outboxEvent } from '../../support/doubles/sample-events.ts'

const KAFKA = { attributePrefix: 'ce_', jsonType: undefined } as const
const event = outboxEvent({
  id: 'the-id',
  seq: 17,
  lane: 2 ** 52 - 1,
  aggregateId: 'o-1',
  payload: '{"total": 12345678901234567890.10}',
  headers: { tenant: 'acme', 'correlation-id': 'c-1', traceparent: '00-a', 'event-version': '3' },
})

it('says in the headers what the event is, with the free ones', () => {
  expect(messageHeaders(event)).toEqual({
    tenant: 'acme',
    'correlation-id': 'c-1',
    traceparent: '00-a',
    'event-version': '3',
    'event-id': 'the-id',
    'event-type': 'OrderCompleted',
    'event-seq': '17',
    'event-lane': '4503599627370495',
    'aggregate-type': 'order',
    'aggregate-id': 'o-1',
    'occurred-at': '2026-01-02T03:04:05.678Z',
  })
})

it.each(Object.keys(messageHeaders(outboxEvent())))(
  'sets the header %s itself, so emit() refuses it among the free ones',
  (name) => {
    const emitted = newEvent({ headers: { [name]: 'forged' } })
    expect(() => prepareEvent(emitted, lenientRules)).toThrow(/is set by the outbox itself/)
  },
)

it('puts everything into one JSON object, and the text of the payload as it is', () => {
  const message = resolveEnvelope('json', KAFKA)(event)
  expect(message).toEqual({
    headers: messageHeaders(event),
    contentType: undefined,
    value:
      '{"id":"the-id","type":"OrderCompleted","seq":17,"lane":4503599627370495,"aggregateType":"order","aggregateId":"o-1",' +
      '"occurredAt":"2026-01-02T03:04:05.678Z","version":"3","correlationId":"c-1","traceparent":"00-a",' +
      '"headers":{"tenant":"acme"},"payload":{"total": 12345678901234567890.10}}',
  })
})

it('leaves out of the JSON object what an event does not have', () => {
  const { value } = resolveEnvelope('json', KAFKA)(outboxEvent({ payload: 'null' })) as never
  expect(Object.keys(JSON.parse(value) as object)).toEqual(
    'id type seq lane aggregateType aggregateId occurredAt payload'.split(' '),
  )
})

it.each(['JSON', 'avro', 7, null, {}, { source: '/shop', mode: 'binary' }, cloudEvents])(
  'refuses %o for an envelope, and says what there is',
  (envelope) => {
    expect(() => resolveEnvelope(envelope as never, KAFKA)).toThrow(
      /envelope must be 'headers', 'json', cloudEvents\(\{ source \}\) or a function/,
    )
  },
)
