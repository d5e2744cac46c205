// The publishers with other envelopes than the default: as every publisher, and what is special to one broker.
import { type CloudEvent, Kafka as KafkaBinding } from 'cloudevents'
import { expect, it } from 'vitest'
import { cloudEvents, type Envelope, type OutboxEvent } from '../../../src/index.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import {
  type Arrived,
  type Broker,
  openKafka,
  openRabbitmq,
} from '../../support/conformance/envelope-brokers.ts'
import {
  describeWithKafka,
  describeWithRabbit,
  kafkaBrokers,
  quietKafka,
} from '../../support/fixture.ts'
import { describePublisher } from '../../support/conformance/publisher-conformance.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'

/** Runs the shared suite with an envelope; `read` finds in a message what the suite asks for. */
function describeEnvelope(
  name: string,
  open: () => Promise<Broker>,
  envelope: Envelope,
  read: (message: Arrived) => { key?: string; payload: unknown; headers: Record<string, string> },
  poison: (event: OutboxEvent) => OutboxEvent,
): void {
  describePublisher(name, async () => {
    const broker = await open()
    return {
      publisher: broker.publisher(envelope),
      openTopic: broker.openTopic,
      arrivals: async (topic) =>
        (await broker.read(topic)).map((message) => ({ key: '', ...read(message) })),
      poison,
      close: broker.close,
    }
  })
}

const tooLarge = (event: OutboxEvent) => ({
  ...event,
  payload: JSON.stringify('x'.repeat(1_100_000)),
})
const unroutable = (event: OutboxEvent) => ({ ...event, topic: uniqueName('nowhere') })
const correlated = (headers: Record<string, string>, correlationId: string | undefined) =>
  correlationId === undefined ? headers : { ...headers, 'correlation-id': correlationId }

function readStructured({ value, headers }: Arrived) {
  const { subject, data, correlationid } = JSON.parse(value) as Record<string, string>
  return { key: subject!, payload: data, headers: correlated(headers, correlationid) }
}

function readBinary({ value, headers }: Arrived) {
  const correlationId = headers['cloudEvents:correlationid']
  return {
    key: headers['cloudEvents:subject']!,
    payload: JSON.parse(value) as unknown,
    headers: correlated(headers, correlationId),
  }
}

function readJson({ value, headers }: Arrived) {
  const { aggregateId, payload } = JSON.parse(value) as Record<string, string>
  return { key: aggregateId!, payload, headers }
}

// A serializer that takes its time, and throws at one type of events.
const serialize = async ({ type, payload }: OutboxEvent) => {
  if (type === 'Poison') throw new TypeError('no')
  await new Promise((resolve) => setImmediate(resolve))
  return Buffer.from(`\u0000${payload}`)
}
const unserializable = (event: OutboxEvent) => ({ ...event, type: 'Poison' })
function readCustom({ value, headers }: Arrived) {
  const payload: unknown = JSON.parse(value.slice(1))
  return { key: headers['aggregate-id']!, payload, headers }
}

const TRACED = {
  'correlation-id': 'c-1',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
}
const structured = cloudEvents({ source: '/shop', mode: 'structured' })
const binary = cloudEvents({ source: '/shop' })

describeWithKafka('kafkaPublisher', () => {
  describeEnvelope('kafkaPublisher with JSON envelopes', openKafka, 'json', readJson, tooLarge)
  describeEnvelope(
    'kafkaPublisher with structured CloudEvents',
    openKafka,
    structured,
    readStructured,
    tooLarge,
  )
  describeEnvelope(
    'kafkaPublisher with a serializer',
    openKafka,
    serialize,
    readCustom,
    unserializable,
  )

  it.each(['binary', 'structured'] as const)(
    'sends in %s mode what the CloudEvents SDK reads',
    async (mode) => {
      const broker = await openKafka()
      const publisher = broker.publisher(cloudEvents({ source: 'https://shop.example', mode }))
      const topic = await broker.openTopic()
      const event = outboxEvent({ topic, payload: '{"n":1}', headers: TRACED })
      await publisher.publish([event])
      await publisher.disconnect?.()
      const [message] = await broker.read(topic)
      const headers = { ...message!.headers, 'content-type': message!.contentType! }
      const { value } = message!
      const read = KafkaBinding.toEvent({ headers, value, body: value } as never) as CloudEvent
      expect(read.validate()).toBe(true)
      expect(read.toJSON()).toMatchObject({
        specversion: '1.0',
        id: event.id,
        type: event.type,
        source: 'https://shop.example',
        subject: event.aggregateId,
        time: event.occurredAt.toISOString(),
        datacontenttype: 'application/json',
        aggregatetype: 'order',
        lane: String(event.lane),
        correlationid: 'c-1',
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        data: { n: 1 },
      })
    },
  )

  it('counts what goes out, not the payload, against maxRequestBytes', async () => {
    const broker = await openKafka()
    const producer = quietKafka(kafkaBrokers()).producer()
    await producer.connect()
    const sizes: number[] = []
    const publisher = kafkaPublisher({
      producer: {
        async sendBatch(batch) {
          sizes.push(batch.topicMessages![0]!.messages.length)
          return await producer.sendBatch(batch)
        },
      },
      maxRequestBytes: 10_000,
      envelope: () => 'x'.repeat(4_000),
    })
    const topic = await broker.openTopic()
    const results = await publisher.publish(
      Array.from({ length: 5 }, () => outboxEvent({ topic, payload: '1', aggregateId: 'one' })),
    )
    await producer.disconnect()
    expect(results.every(({ ok }) => ok)).toBe(true)
    expect(sizes).toEqual([2, 2, 1])
  })
})

describeWithRabbit('rabbitmqPublisher', () => {
  describeEnvelope(
    'rabbitmqPublisher with binary CloudEvents',
    openRabbitmq,
    binary,
    readBinary,
    unroutable,
  )
  describeEnvelope(
    'rabbitmqPublisher with a serializer',
    openRabbitmq,
    serialize,
    readCustom,
    unserializable,
  )

  it('takes no routing keys from a serializer', async () => {
    const broker = await openRabbitmq()
    const publisher = broker.publisher(() => ({ value: 'x', headers: { CC: 'elsewhere' } }))
    const results = await publisher.publish([outboxEvent({ topic: await broker.openTopic() })])
    await publisher.disconnect?.()
    await broker.close()
    expect(results).toMatchObject([
      {
        kind: 'permanent',
        error: { message: expect.stringMatching(/'CC' .* has a special meaning/) },
      },
    ])
  })
})
