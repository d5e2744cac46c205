import { Producer } from '@platformatic/kafka'
import { describe, expect, it } from 'vitest'
import { platformaticKafkaPublisher } from '../../../src/publishers/platformatic-kafka/platformatic-kafka-publisher.ts'
import {
  describeKafkaClient,
  openTopic,
  readAll,
} from '../../support/conformance/kafka-conformance.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'
import { describeWithKafka, kafkaBrokers } from '../../support/fixture.ts'
import { kafkaClient } from '../../support/kafka-clients.ts'
import { startProxy } from '../../support/servers/tcp-proxy.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const open = kafkaClient('platformatic').publisher

describeKafkaClient('platformaticKafkaPublisher', open)

describeWithKafka('platformaticKafkaPublisher, given several brokers', () => {
  it('finds another broker when the first that it was told of never answers', async () => {
    const [broker] = kafkaBrokers()
    const silent = await startProxy({ port: Number(broker!.split(':')[1]) })
    silent.halfOpen()
    const publisher = open([`127.0.0.1:${silent.port}`, broker!], {
      retries: 0,
      requestMs: 1_000,
    })
    const topic = await openTopic()
    const event = outboxEvent({ topic })
    await waitUntil(async () => (await publisher.publish([event])).every(({ ok }) => ok), {
      message: 'the event was sent through the other broker',
      timeoutMs: 20_000,
    })
    await publisher.disconnect?.()
    await silent.stop()
    expect(await readAll(topic)).toHaveLength(1)
  })
})

describe('platformaticKafkaPublisher, given options', () => {
  it.each([
    [undefined, /takes an object with options/],
    [{}, /takes client with bootstrapBrokers/],
    [{ client: { clientId: 'orders' } }, /takes client with bootstrapBrokers/],
    [{ clint: {} }, /did you mean 'client'/],
    [{ clientId: 'a', bootstrapBrokers: ['a:1'] }, /write platformaticKafkaPublisher\({ client: {/],
    [
      { client: { clientId: 'a', bootstrapBrokers: ['a:1'], acks: 1 } },
      /client\.acks .* remove it/,
    ],
    [{ client: { clientId: 'a', bootstrapBrokers: ['a:1'], retries: 1 } }, /pass it beside client/],
  ])('refuses %j', (options, message) => {
    expect(() => platformaticKafkaPublisher(options as never)).toThrow(message)
  })

  it('says what to write when it gets a producer', async () => {
    const producer = new Producer({ clientId: 'a', bootstrapBrokers: ['a:1'] })
    expect(() => platformaticKafkaPublisher(producer as never)).toThrow(
      /a producer; it makes its own .* write platformaticKafkaPublisher\({ client: {/,
    )
    await producer.close()
  })
})
