// Every form in which an event travels is read as the same event; what cannot be read for certain is refused.
import fc from 'fast-check'
import type { KafkaMessage } from 'kafkajs'
import { describe, expect, it } from 'vitest'
import { UnreadableMessageError } from '../../../src/errors.ts'
import { readEvent } from '../../../src/inbox/event.ts'
import type { InboxMessage, PlainMessage } from '../../../src/inbox/message.ts'
import { isStorable } from '../../../src/checks/storable.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'

const ID = '01890a5d-ac96-774b-bcce-b302099a8057'
const PAYLOAD = { total: 42, text: 'größer' }
const LANE = 2 ** 52 - 1
const OCCURRED = '2026-01-02T03:04:05.678Z'
const json = (value: unknown) => Buffer.from(JSON.stringify(value))

const headers = {
  'event-id': ID,
  'event-type': 'OrderPlaced',
  'event-seq': '7',
  'event-lane': '4503599627370495',
  'event-version': '2',
  'aggregate-type': 'order',
  'aggregate-id': 'order-1',
  'occurred-at': OCCURRED,
  'correlation-id': 'request 9',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  own: 'free',
}
const attributes = {
  specversion: '1.0',
  id: ID,
  source: '/shop',
  type: 'OrderPlaced',
  time: OCCURRED,
  subject: 'order-1',
  datacontenttype: 'application/json',
  aggregatetype: 'order',
  sequence: '0000000000000000007',
  lane: '4503599627370495',
  partitionkey: 'order-1',
  correlationid: 'request 9',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  dataversion: '2',
}
const envelope = {
  id: ID,
  type: 'OrderPlaced',
  seq: 7,
  lane: LANE,
  aggregateType: 'order',
  aggregateId: 'order-1',
  occurredAt: OCCURRED,
  version: '2',
  correlationId: 'request 9',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  headers: { own: 'free' },
  payload: PAYLOAD,
}
const prefixed = (prefix: string) => ({
  own: 'free',
  ...Object.fromEntries(Object.entries(attributes).map(([name, text]) => [prefix + name, text])),
})
const STRUCTURED = 'application/cloudevents+json; charset=UTF-8'

/** As kafkajs hands them out: values as bytes. */
function kafka(texts: Record<string, string>, value: Buffer | null): KafkaMessage {
  const bytes = Object.entries(texts).map(([name, text]) => [name, Buffer.from(text)])
  return {
    key: Buffer.from('order-1'),
    value,
    headers: Object.fromEntries(bytes) as Record<string, Buffer>,
    timestamp: '0',
    attributes: 0,
    offset: '0',
  }
}

function amqp(given: Record<string, unknown>, content: Buffer, properties: object = {}) {
  return { content, fields: {}, properties: { headers: given, ...properties } }
}

const forms: Record<string, InboxMessage> = {
  'Kafka, metadata in headers': kafka(headers, json(PAYLOAD)),
  'Kafka, JSON envelope': kafka(headers, json(envelope)),
  'Kafka, JSON envelope whose headers a bridge lost': kafka({ own: 'free' }, json(envelope)),
  'Kafka, CloudEvents binary': kafka(
    { ...prefixed('ce_'), 'content-type': 'application/json' },
    json(PAYLOAD),
  ),
  'Kafka, CloudEvents structured': kafka(
    { own: 'free', 'content-type': STRUCTURED },
    json({ ...attributes, data: PAYLOAD }),
  ),
  'Kafka, names in other cases': kafka(
    Object.fromEntries(Object.entries(headers).map(([name, text]) => [title(name), text])),
    json(PAYLOAD),
  ),
  'the payload of eachMessage': {
    topic: 'orders',
    message: kafka(headers, json(PAYLOAD)),
  },
  'AMQP, metadata in headers': amqp(headers, json(PAYLOAD), {
    messageId: 'other',
    type: 'OrderPlaced',
    contentType: 'application/json',
  }),
  'AMQP, numbers as the sequence and the lane': amqp(
    { ...headers, 'event-seq': 7, 'event-lane': LANE },
    json(PAYLOAD),
  ),
  'AMQP, JSON envelope': amqp(headers, json(envelope)),
  'AMQP, CloudEvents binary': amqp(prefixed('cloudEvents:'), json(PAYLOAD)),
  'AMQP, CloudEvents binary with an underscore': amqp(prefixed('cloudEvents_'), json(PAYLOAD)),
  'AMQP, CloudEvents structured': amqp({ own: 'free' }, json({ ...attributes, data: PAYLOAD }), {
    contentType: STRUCTURED,
    messageId: 'other',
  }),
  'a plain object': { ...envelope, headers: { own: 'free' } },
}

function without<Fields extends object>(name: string, fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => key !== name)) as Fields
}

function title(name: string): string {
  return name === 'own' ? name : name.replaceAll(/\b\w/g, (letter) => letter.toUpperCase())
}

describe('an event', () => {
  it.each(Object.entries(forms))('is read from %s', (_, message) => {
    const event = readEvent(message)
    expect(event).toMatchObject({
      id: ID,
      type: 'OrderPlaced',
      aggregateType: 'order',
      aggregateId: 'order-1',
      seq: 7,
      lane: LANE,
      occurredAt: new Date(OCCURRED),
      version: '2',
      correlationId: 'request 9',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      headers: { own: 'free' },
    })
    expect(event.payload).toEqual(PAYLOAD)
  })

  it('is the structured CloudEvent in the body, whatever attributes of another came along as headers', () => {
    const given = { ce_id: 'other', 'cloudEvents:id': 'other', 'content-type': STRUCTURED }
    const body = json({ ...attributes, data: PAYLOAD })
    expect(readEvent(kafka(given, body)).id).toBe(ID)
    expect(readEvent(amqp(given, body, { contentType: STRUCTURED })).id).toBe(ID)
  })

  it('keeps what a handler finds in the headers of its event: correlation, trace and version', () => {
    const own = {
      'correlation-id': 'request 9',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      'event-version': '2',
    }
    const handled = outboxEvent({ headers: { ...own, 'event-id': 'not of this object' } })
    expect(readEvent(handled)).toMatchObject({
      id: handled.id,
      correlationId: 'request 9',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      version: '2',
    })
    expect(
      readEvent({ id: ID, correlationId: 'mine', headers: own } as PlainMessage),
    ).toMatchObject({
      correlationId: 'mine',
    })
  })

  it.each<[string, InboxMessage]>([
    ['headers', kafka(without('event-lane', headers), json(PAYLOAD))],
    ['a JSON envelope', kafka({}, json(without('lane', envelope)))],
    ['CloudEvents in headers', kafka(without('ce_lane', prefixed('ce_')), json(PAYLOAD))],
    [
      'a structured CloudEvent',
      kafka(
        { 'content-type': STRUCTURED },
        json({ ...without('lane', attributes), data: PAYLOAD }),
      ),
    ],
    ['a plain object', without('lane', envelope)],
  ])('is read from %s of a producer that sends no lane', (_, message) => {
    const event = readEvent(message)
    expect(event).toMatchObject({ id: ID, aggregateId: 'order-1', seq: 7, lane: null })
    expect(event.payload).toEqual(PAYLOAD)
  })

  it('has the lane of an event that a handler got', () => {
    const handled = outboxEvent()
    expect(readEvent(handled).lane).toBe(handled.lane)
  })

  it('is known by the messageId of an AMQP message that says no more', () => {
    const properties = { messageId: 'm-1', type: 'Paid' }
    const event = readEvent(amqp({}, Buffer.from('no JSON'), properties))
    expect(event).toMatchObject({ id: 'm-1', type: 'Paid', seq: null, aggregateId: null })
  })

  it('is known by any id of a plain object', () => {
    expect(readEvent({ id: 'evt_123' })).toMatchObject({ id: 'evt_123', type: null, seq: null })
    expect(readEvent({ id: 'evt_123', aggregateId: 5n, seq: 12n })).toMatchObject({
      aggregateId: '5',
      seq: 12,
    })
  })

  it('has the payload null when Kafka says that its key was deleted', () => {
    expect(readEvent(kafka(headers, null)).payload).toBeNull()
  })

  it('keeps its payload out of whatever is printed of it', () => {
    const event = readEvent(kafka(headers, json({ secret: 1 })))
    expect(JSON.stringify(event)).not.toContain('secret')
    expect(event.payload).toEqual({ secret: 1 })
    expect(event.payload).toBe(event.payload)
  })

  it('comes with a body that is not JSON, and says so only to those who ask, without quoting it', () => {
    const event = readEvent(kafka(headers, Buffer.from('secret{')))
    expect(event.id).toBe(ID)
    const complaint = capture(() => event.payload)
    expect(complaint).toBeInstanceOf(UnreadableMessageError)
    expect(complaint).toMatchObject({ code: 'MESSAGE_UNREADABLE' })
    expect(`${complaint.message} ${String(complaint.cause)}`).not.toContain('secret')
  })

  it('may have a payload with an id of its own, or one that looks like another envelope', () => {
    const inner = { ...envelope, id: 'another' }
    expect(readEvent(kafka(headers, json({ id: 5 }))).payload).toEqual({ id: 5 })
    expect(readEvent(kafka(headers, json(inner))).payload).toEqual(inner)
  })
})

describe('the event id', () => {
  it('is that of the header, whatever else the message says', () => {
    const message = kafka(
      { ...prefixed('ce_'), ...headers, ce_id: 'b', 'content-type': STRUCTURED },
      json({ ...attributes, id: 'c' }),
    )
    expect(readEvent(message).id).toBe(ID)
  })

  it('is not taken from a body that is no envelope: that would be the id of a thing', () => {
    const { payload: _, ...almost } = envelope
    for (const body of [{ id: ID }, almost, [envelope], 'text', null]) {
      expect(refusalOf(kafka({}, json(body))).message).toMatch(/event-id, ce_id or cloudEvents:id/)
    }
  })

  it('may come in several headers that agree, and not in headers that do not', () => {
    const repeated = (...ids: string[]) => ({
      value: json(PAYLOAD),
      headers: { 'event-id': ids.map((id) => Buffer.from(id)) },
    })
    expect(readEvent(repeated('a', 'a')).id).toBe('a')
    refusalOf(repeated('a', 'b'))
    refusalOf({ value: null, headers: { 'event-id': 'a', 'Event-Id': 'b' } })
    refusalOf({ value: null, headers: { 'event-id': [] } })
  })

  it.each<[string, unknown]>([
    ['empty', ''],
    ['longer than 255 bytes', 'ä'.repeat(128)],
    ['with U+0000', 'a\u0000b'],
    ['with half a character', 'a\ud800'],
    ['of bytes that are no UTF-8', Buffer.from([0x61, 0xff])],
    ['an object', { a: 1 }],
    ['a fraction', 1.5],
    ['a boolean', true],
  ])('is refused when it is %s, and nothing else is taken instead', (_, id) => {
    const properties = { messageId: 'another' }
    const message = amqp({ 'event-id': id, ce_id: 'another' }, json(envelope), properties)
    expect(verdict(message)).toBe('refused')
    expect(verdict({ id } as never)).toBe('refused')
  })

  it('may take 255 bytes', () => {
    expect(readEvent({ id: 'x'.repeat(255) }).id).toHaveLength(255)
  })
})

it.each(['seq', 'lane'] as const)(
  'reads as %s nothing but a whole number that is exact',
  (field) => {
    const read = (value: unknown) => readEvent({ id: '1', [field]: value })[field]
    expect([0, '12', 2n, Number.MAX_SAFE_INTEGER].map(read)).toEqual([
      0,
      12,
      2,
      Number.MAX_SAFE_INTEGER,
    ])
    for (const value of [
      '',
      '-1',
      '1.0',
      '1e3',
      ' 1',
      '0x1',
      '9'.repeat(16),
      '1'.repeat(33),
      1.5,
      -1,
      Number.NaN,
      {},
    ]) {
      expect(read(value)).toBeNull()
    }
  },
)

it('refuses whatever is no message, and says what it takes', () => {
  for (const odd of [null, undefined, 'text', 5, [], {}, { content: 1 }, { message: {} }]) {
    expect(refusalOf(odd as never).message).toMatch(/kafkajs|no event id/)
  }
})

it('reads or refuses anything, with its own error and without quoting the body', () => {
  const leaf = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.uint8Array().map((bytes) => Buffer.from(bytes)),
    fc.integer(),
    fc.double(),
    fc.constantFrom(null, undefined, true, {}, 'x'.repeat(300), 'a\u0000', '\ud800'),
  )
  const value = fc.oneof(leaf, fc.array(leaf, { maxLength: 3 }))
  const name = fc.constantFrom(
    ...Object.keys(headers),
    ...Object.keys(prefixed('ce_')),
    ...Object.keys(prefixed('cloudEvents:')),
    '__proto__',
    'constructor',
    'content-type',
    'EVENT-ID',
  )
  const someHeaders = fc.oneof(fc.dictionary(name, value, { maxKeys: 6 }), leaf)
  const body = fc.oneof(
    leaf,
    fc.json().map((text) => Buffer.from(text)),
    fc.record(Object.fromEntries(Object.keys(envelope).map((key) => [key, value]))).map(json),
  )
  const property = fc.property(someHeaders, body, value, (given, content, other) => {
    const messages = [
      { value: content, headers: given },
      { topic: 't', message: { value: content, headers: given } },
      { content, properties: { headers: given, messageId: other, contentType: STRUCTURED } },
      { id: other, seq: other, lane: other, aggregateId: other, headers: given },
    ]
    for (const message of messages) {
      expect(['fits', 'refused']).toContain(verdict(message as never))
    }
  })
  fc.assert(property, { seed: 1, numRuns: 2_000 })
})

function verdict(message: InboxMessage): unknown {
  try {
    const { id, seq, lane } = readEvent(message)
    const fits = Buffer.byteLength(id) <= 255 && isStorable(id) && id !== ''
    const areExact = [seq, lane].every((n) => n === null || Number.isSafeInteger(n))
    return fits && areExact ? 'fits' : { id, seq, lane }
  } catch (error) {
    return error instanceof UnreadableMessageError ? 'refused' : error
  }
}

function refusalOf(message: InboxMessage): Error {
  const refusal = capture(() => readEvent(message))
  expect(refusal).toBeInstanceOf(UnreadableMessageError)
  return refusal
}

function capture(action: () => unknown): Error {
  try {
    action()
  } catch (error) {
    return error as Error
  }
  throw new Error('nothing was thrown')
}
