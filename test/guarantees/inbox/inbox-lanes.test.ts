// An inbox keeps order exactly as far as the publisher does: within a Kafka topic, across the queues of a RabbitMQ
// publisher, across all handlers.
import { expect, it } from 'vitest'
import type { InboxMessage } from '../../../src/inbox/inbox.ts'
import type { Publisher } from '../../../src/index.ts'
import { type HandledEvent, handlersPublisher } from '../../../src/publishers/handlers.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import { rabbitmqPublisher } from '../../../src/publishers/rabbitmq/rabbitmq-publisher.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import {
  describeWithKafka,
  describeWithRabbit,
  kafkaBrokers,
  quietKafka,
  rabbitUrl,
  useFixture,
} from '../../support/fixture.ts'
import { useInbox } from '../../support/inbox.ts'
import { openRabbit } from '../../support/servers/rabbitmq.ts'
import { createTopic, readTopic } from '../../support/servers/topic-reader.ts'

const fixture = useFixture()
const { inbox: create } = useInbox(fixture)

/** Saves one event of an aggregate for each topic, in this order, and publishes all of them. */
async function publishTo(publisher: Publisher, topics: readonly string[]): Promise<void> {
  const outbox = fixture.outbox({ publisher, immediate: false })
  for (const topic of topics) {
    await outbox.withOutbox(async (_, emit) => {
      emit({ type: 'Changed', aggregateType: 'order', aggregateId: 'a', topic, payload: null })
    })
  }
  while ((await outbox.pollOnce()) > 0);
}

/** Delivers them from the last to the first, which no consumer of several topics can rule out. */
async function deliverBackwards(messages: readonly InboxMessage[]): Promise<string[]> {
  const inbox = create({ order: 'aggregate' })
  const outcomes: string[] = []
  for (const message of messages.toReversed()) {
    outcomes.push((await inbox.once(message, () => {})).outcome)
  }
  return outcomes
}

describeWithKafka('on Kafka', () => {
  it('is an event late for a later one on its topic, and not for one on another topic', async () => {
    const topics = [uniqueName('orders'), uniqueName('audit')] as const
    for (const topic of topics) await createTopic(kafkaBrokers(), topic, 1)
    const publisher = kafkaPublisher({ kafka: quietKafka(kafkaBrokers()) })
    await publishTo(publisher, [...topics, ...topics])
    const [orders, audit] = await Promise.all(topics.map(readAll))
    const saved = [orders![0]!, audit![0]!, orders![1]!, audit![1]!]
    expect(saved.map(({ headers }) => headers['aggregate-id'])).toEqual(['a', 'a', 'a', 'a'])
    expect(await deliverBackwards(saved)).toEqual(['handled', 'handled', 'late', 'late'])
    // One topic as a whole before the other, as a consumer that is behind on one of them delivers.
    const reader = create({ order: 'aggregate', consumer: 'mail' })
    for (const message of [...audit!, ...orders!]) {
      expect(await reader.once(message, () => {})).toMatchObject({ outcome: 'handled' })
    }
  })
})

async function readAll(topic: string) {
  const reader = await readTopic(kafkaBrokers(), topic)
  try {
    return await reader.readToEnd()
  } finally {
    await reader.stop()
  }
}

describeWithRabbit('on RabbitMQ', () => {
  it('is an event late for a later one of its publisher, whichever queue that went to', async () => {
    const far = await openRabbit(rabbitUrl())
    try {
      const queues = [await far.declareQueue(), await far.declareQueue()]
      await publishTo(rabbitmqPublisher({ url: rabbitUrl() }), queues)
      const messages: InboxMessage[] = []
      for (const queue of queues) {
        for (const { bytes, headers } of await far.read(queue)) {
          messages.push({ content: bytes, properties: { headers } })
        }
      }
      expect(await deliverBackwards(messages)).toEqual(['handled', 'late'])
    } finally {
      await far.close()
    }
  })
})

it('is an event of a handler late for a later one of any topic', async () => {
  const handled: HandledEvent[] = []
  const handlers = { Changed: (event: HandledEvent) => void handled.push(event) }
  await publishTo(handlersPublisher({ handlers }), ['orders', 'audit'])
  expect(handled.map(({ topic }) => topic)).toEqual(['orders', 'audit'])
  expect(await deliverBackwards(handled)).toEqual(['handled', 'late'])
})
