// What the publishers write, the inbox reads: one event in every envelope, over the real brokers, is one event.
import type { GetMessage } from 'amqplib'
import type { EachMessagePayload } from 'kafkajs'
import { expect, it } from 'vitest'
import type { InboxMessage } from '../../src/inbox/inbox.ts'
import { cloudEvents, type OutboxEvent, type Publisher } from '../../src/index.ts'
import { kafkaPublisher } from '../../src/publishers/kafka/kafka-publisher.ts'
import { rabbitmqPublisher } from '../../src/publishers/rabbitmq/rabbitmq-publisher.ts'
import {
  describeWithKafka,
  describeWithRabbit,
  kafkaBrokers,
  quietKafka,
  rabbitUrl,
  useFixture,
} from '../support/fixture.ts'
import { useInbox } from '../support/inbox.ts'
import { openRabbit } from '../support/servers/rabbitmq.ts'
import { outboxEvent } from '../support/doubles/sample-events.ts'
import { createTopic } from '../support/servers/topic-reader.ts'
import { uniqueName } from '../support/doubles/unique-name.ts'
import { waitUntil } from '../support/timing/wait-until.ts'

const fixture = useFixture()
const { inbox: create } = useInbox(fixture)

const ENVELOPES = [
  'headers',
  'json',
  cloudEvents({ source: '/shop' }),
  cloudEvents({ source: '/shop', mode: 'structured' }),
] as const

const sent = (topic: string) =>
  outboxEvent({
    topic,
    seq: 1_234_567_890_123,
    aggregateId: 'größer/1',
    payload: '{"text":"é\\"😀"}',
    headers: { 'correlation-id': 'request 9', 'event-version': '2', tenant: 'é' },
  })

async function publishAll(event: OutboxEvent, open: (n: number) => Publisher): Promise<void> {
  for (const n of ENVELOPES.keys()) {
    const publisher = open(n)
    expect(await publisher.publish([event])).toMatchObject([{ ok: true }])
    await publisher.disconnect?.()
  }
}

const ONE_EVENT = ['handled', 'duplicate', 'duplicate', 'duplicate']

/** Each form has to be readable without the others. Answers what became of all of them together. */
async function deliver(messages: readonly InboxMessage[], event: OutboxEvent): Promise<string[]> {
  for (const message of messages) {
    const reader = create({ consumer: uniqueName('reader'), order: 'aggregate' })
    await reader.once(message, (_, { payload, ...read }) => {
      expect(payload).toEqual(JSON.parse(event.payload))
      expect(read).toMatchObject({
        id: event.id,
        type: event.type,
        aggregateType: event.aggregateType,
        aggregateId: event.aggregateId,
        seq: event.seq,
        lane: event.lane,
        occurredAt: event.occurredAt,
        version: '2',
        correlationId: 'request 9',
        headers: { tenant: 'é' },
      })
    })
  }
  const inbox = create({ order: 'aggregate' })
  const outcomes: string[] = []
  for (const message of messages.toReversed()) {
    outcomes.push((await inbox.once(message, () => {})).outcome)
  }
  return outcomes
}

describeWithKafka('an event on Kafka', () => {
  it('is the same event to the inbox in every envelope', async () => {
    const [brokers, topic] = [kafkaBrokers(), uniqueName('envelopes')]
    await createTopic(brokers, topic, 1)
    const event = sent(topic)
    await publishAll(event, (n) =>
      kafkaPublisher({ kafka: quietKafka(brokers), envelope: ENVELOPES[n]! }),
    )
    const messages: EachMessagePayload[] = []
    const consumer = quietKafka(brokers).consumer({ groupId: topic })
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({ eachMessage: async (payload) => void messages.push(payload) })
    await waitUntil(() => messages.length >= ENVELOPES.length, { message: 'all have arrived' })
    await consumer.disconnect()
    expect(await deliver(messages, event)).toEqual(ONE_EVENT)
  })
})

describeWithRabbit('an event on RabbitMQ', () => {
  it('is the same event to the inbox in every envelope', async () => {
    const far = await openRabbit(rabbitUrl())
    const queue = await far.declareQueue()
    const event = sent(queue)
    await publishAll(event, (n) => rabbitmqPublisher({ url: rabbitUrl(), envelope: ENVELOPES[n]! }))
    const messages: GetMessage[] = []
    for (const _ of ENVELOPES) {
      const message = await far.channel.get(queue, { noAck: true })
      if (message) messages.push(message)
    }
    await far.close()
    expect(await deliver(messages, event)).toEqual(ONE_EVENT)
  })
})
