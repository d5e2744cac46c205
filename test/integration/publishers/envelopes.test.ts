// Every envelope on both brokers, read back by plain consumers: one suite that says what holds for both.
import { CloudEvent } from 'cloudevents'
import { describe, expect, it } from 'vitest'
import {
  cloudEvents,
  type Envelope,
  type EventSerializer,
  type OutboxEvent,
  type PublishResult,
} from '../../../src/index.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import { rabbitmqPublisher } from '../../../src/publishers/rabbitmq/rabbitmq-publisher.ts'
import {
  type Arrived,
  type Broker,
  openKafka,
  openRabbitmq,
} from '../../support/conformance/envelope-brokers.ts'
import { describeWithKafka, describeWithRabbit } from '../../support/fixture.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'

const PAYLOAD = '{"text":"é😀","exact": 12345678901234567890.10}'
const HEADERS = {
  tenant: 'acmé',
  'correlation-id': 'c-1',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
}
const verdicts = (results: readonly PublishResult[]) =>
  results.map((result) => (result.ok ? 'ok' : result.kind))
const retriable = () => Object.assign(new Error('away'), { retriable: true })

function describeEnvelopes(name: string, open: () => Promise<Broker>) {
  describe(`envelopes on ${name}`, () => {
    /** What a plain consumer gets of the events, and what the publisher said of them. */
    async function exchange(
      envelope: Envelope | undefined,
      events: (topic: string) => readonly OutboxEvent[],
      check: (
        arrived: readonly Arrived[],
        results: readonly PublishResult[],
        broker: Broker,
      ) => void,
    ) {
      const broker = await open()
      const publisher = broker.publisher(envelope)
      try {
        const topic = await broker.openTopic()
        const results = await publisher.publish(events(topic))
        check(await broker.read(topic), results, broker)
      } finally {
        await publisher.disconnect?.()
        await broker.close()
      }
    }
    const rich = outboxEvent({
      seq: 42,
      payload: PAYLOAD,
      headers: { ...HEADERS, 'event-version': '3' },
    })
    const metadata = {
      ...rich.headers,
      'event-id': rich.id,
      'event-type': 'OrderCompleted',
      'event-seq': '42',
      'event-lane': String(rich.lane),
      'aggregate-type': 'order',
      'aggregate-id': rich.aggregateId,
      'occurred-at': '2026-01-02T03:04:05.678Z',
    }
    const attributes = {
      specversion: '1.0',
      id: rich.id,
      source: '/shop/orders',
      type: 'OrderCompleted',
      time: '2026-01-02T03:04:05.678Z',
      subject: rich.aggregateId,
      aggregatetype: 'order',
      partitionkey: rich.aggregateId,
      sequence: '0000000000000000042',
      lane: String(rich.lane),
      correlationid: 'c-1',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      dataversion: '3',
    }
    const alone = (topic: string) => [{ ...rich, topic }]

    it.each([undefined, 'headers'] as const)('sends the payload alone for %s', async (envelope) => {
      await exchange(envelope, alone, ([message, ...more], _, { jsonType: contentType }) => {
        expect(more).toEqual([])
        expect(message).toEqual({
          value: PAYLOAD,
          bytes: Buffer.from(PAYLOAD),
          headers: metadata,
          contentType,
        })
      })
    })

    it('sends one JSON object, with the same headers beside it', async () => {
      await exchange('json', alone, ([message], _, { jsonType }) => {
        expect(message).toMatchObject({ headers: metadata, contentType: jsonType })
        expect(message?.value.endsWith(`,"payload":${PAYLOAD}}`)).toBe(true)
        expect(JSON.parse(message!.value)).toEqual({
          id: rich.id,
          type: 'OrderCompleted',
          seq: 42,
          lane: rich.lane,
          aggregateType: 'order',
          aggregateId: rich.aggregateId,
          occurredAt: '2026-01-02T03:04:05.678Z',
          version: '3',
          correlationId: 'c-1',
          traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
          headers: { tenant: 'acmé' },
          payload: JSON.parse(PAYLOAD),
        })
      })
    })

    it('sends a CloudEvent in binary mode: attributes as headers, the payload as data', async () => {
      const envelope = cloudEvents({ source: '/shop/orders' })
      await exchange(envelope, alone, ([message], _, { attributePrefix }) => {
        const named = Object.entries(attributes).map(([key, value]) => [
          attributePrefix + key,
          value,
        ])
        const beside = {
          tenant: 'acmé',
          traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        }
        expect(message).toMatchObject({ value: PAYLOAD, contentType: 'application/json' })
        expect(message?.headers).toEqual({ ...Object.fromEntries(named), ...beside })
        expect(readByName(message!, attributePrefix).validate()).toBe(true)
      })
    })

    it('sends a CloudEvent in structured mode: one JSON object of the CloudEvents format', async () => {
      const envelope = cloudEvents({ source: '/shop/orders', mode: 'structured' })
      await exchange(envelope, alone, ([message]) => {
        expect(message?.contentType).toBe('application/cloudevents+json; charset=UTF-8')
        expect(message?.headers).toEqual({
          tenant: 'acmé',
          traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        })
        expect(message?.value.endsWith(`,"data":${PAYLOAD}}`)).toBe(true)
        const parsed = JSON.parse(message!.value) as Partial<CloudEvent<unknown>>
        expect(parsed).toEqual({
          ...attributes,
          datacontenttype: 'application/json',
          data: JSON.parse(PAYLOAD),
        })
        expect(new CloudEvent(parsed).validate()).toBe(true)
      })
    })

    it('sends the bytes of a serializer exactly as given, and says what they are', async () => {
      const bytes = Buffer.from(Array.from({ length: 256 }, (_, n) => n))
      const serialize: EventSerializer = async () => {
        return { value: bytes, headers: { schema: '7' }, contentType: 'application/avro' }
      }
      await exchange(serialize, alone, ([message]) => {
        expect(message?.bytes.equals(bytes)).toBe(true)
        expect(message?.contentType).toBe('application/avro')
        expect(message?.headers).toEqual({ ...metadata, schema: '7' })
      })
    })

    it('says nothing of bytes that nobody has named', async () => {
      await exchange(
        () => Buffer.from([1]),
        alone,
        ([message]) => {
          expect(message).toMatchObject({ bytes: Buffer.from([1]), headers: metadata })
          expect(message?.contentType).toBeUndefined()
        },
      )
    })

    it('makes what cannot be serialized a dead letter, alone', async () => {
      const serialize: EventSerializer = async ({ type, payload }) => {
        if (type === 'Thrown') throw new TypeError(payload)
        return type === 'Nonsense' ? (7 as never) : payload
      }
      const types = ['Good', 'Thrown', 'Good', 'Nonsense', 'Good']
      const events = (topic: string) =>
        types.map((type, n) => outboxEvent({ topic, type, aggregateId: 'one', payload: `${n}` }))
      await exchange(serialize, events, (arrived, results) => {
        expect(verdicts(results)).toEqual(['ok', 'permanent', 'ok', 'permanent', 'ok'])
        expect(arrived.map(({ value }) => value)).toEqual(['0', '2', '4'])
      })
    })

    it('sends what is in front of an event that waits for its serializer, and holds what is behind', async () => {
      const serialize: EventSerializer = async ({ type, payload }) => {
        if (type === 'Waits') throw retriable()
        return payload
      }
      const events = (topic: string) => [
        outboxEvent({ topic, aggregateId: 'one', payload: '0' }),
        outboxEvent({ topic, aggregateId: 'one', payload: '1', type: 'Waits' }),
        outboxEvent({ topic, aggregateId: 'one', payload: '2' }),
        outboxEvent({ topic, aggregateId: 'two', payload: '3' }),
      ]
      await exchange(serialize, events, (arrived, results) => {
        expect(verdicts(results)).toEqual(['ok', 'transient', 'held', 'ok'])
        expect(results[1]).toMatchObject({ blames: 'topic' })
        expect(arrived.map(({ value }) => value).toSorted()).toEqual(['0', '3'])
      })
    })

    it('keeps the order of an aggregate whose serializer is quicker with the later events', async () => {
      const finish: (() => void)[] = []
      const serialize: EventSerializer = async ({ payload }) => {
        // Answers when all are asked, the last one first.
        await new Promise<void>((resolve) => {
          finish.push(resolve)
          if (finish.length === 20) for (const one of finish.toReversed()) setImmediate(one)
        })
        return payload
      }
      const events = (topic: string) =>
        Array.from({ length: 20 }, (_, n) =>
          outboxEvent({ topic, aggregateId: `order-${n % 3}`, payload: String(n) }),
        )
      await exchange(serialize, events, (arrived, results) => {
        expect(verdicts(results)).toEqual(results.map(() => 'ok'))
        for (const rest of [0, 1, 2]) {
          const mine = arrived.map(({ value }) => Number(value)).filter((n) => n % 3 === rest)
          expect(mine).toEqual(mine.toSorted((a, b) => a - b))
        }
        expect(arrived).toHaveLength(20)
      })
    })

    it('does not wait for ever for a serializer that never answers', async () => {
      const serialize: EventSerializer = ({ type, payload }) =>
        type === 'Never' ? new Promise(() => {}) : payload
      const events = (topic: string) => [
        outboxEvent({ topic, type: 'Never' }),
        outboxEvent({ topic, payload: '1' }),
      ]
      await exchange(serialize, events, (arrived, results) => {
        expect(results).toMatchObject([
          {
            kind: 'transient',
            blames: 'topic',
            error: { message: expect.stringMatching(/did not finish within 3s/) },
          },
          { ok: true },
        ])
        expect(arrived.map(({ value }) => value)).toEqual(['1'])
      })
    })
  })
}

/** By the names that the binding gives them, for a broker that the SDK does not know. */
function readByName({ headers, value, contentType }: Arrived, prefix: string) {
  const attributes = Object.entries(headers)
    .filter(([name]) => name.startsWith(prefix))
    .map(([name, text]) => [name.slice(prefix.length), text])
  return new CloudEvent<unknown>({
    ...Object.fromEntries(attributes),
    datacontenttype: contentType,
    data: JSON.parse(value),
  })
}

describeWithKafka('kafkaPublisher', () => describeEnvelopes('Kafka', openKafka))
describeWithRabbit('rabbitmqPublisher', () => describeEnvelopes('RabbitMQ', openRabbitmq))

it('refuses an envelope that it does not know when a publisher is made', () => {
  const envelope = 'xml' as never
  expect(() => kafkaPublisher({ producer: { sendBatch: async () => [] }, envelope })).toThrow(
    /envelope must be 'headers', 'json'/,
  )
  expect(() => rabbitmqPublisher({ url: 'amqp://localhost', envelope })).toThrow(
    /envelope must be 'headers', 'json'/,
  )
})
