import { Kafka, logLevel, type ProducerBatch } from 'kafkajs'
import { describe, expect, it, vi } from 'vitest'
import type { PublishResult } from '../../../src/index.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import { describeWithKafka, kafkaBrokers, quietKafka } from '../../support/fixture.ts'
import {
  describeKafkaClient,
  openTopic,
  readAll,
} from '../../support/conformance/kafka-conformance.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'
import { kafkaClient } from '../../support/kafka-clients.ts'
import { startProxy } from '../../support/servers/tcp-proxy.ts'
import { defer } from '../../support/timing/deferred.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

describeKafkaClient('kafkaPublisher', kafkaClient('kafkajs').publisher)

describeWithKafka('kafkaPublisher', () => {
  it('counts an event whose partition was not acknowledged as not sent', async () => {
    // A fake stands in: kafkajs skips a partition whose leader moves between two of its own tries to a
    // broker that has answered already, which cannot be timed on a real cluster.
    const publisher = kafkaPublisher({
      kafka: {
        producer: (config) => {
          const partitioner = config?.createPartitioner?.()
          const partitionMetadata = [0, 1].map((partitionId) => {
            return { partitionId, leader: 1, partitionErrorCode: 0, replicas: [], isr: [] }
          })
          return {
            connect: async () => {},
            disconnect: async () => {},
            sendBatch: async ({ topicMessages }: { topicMessages: TopicMessages[] }) => {
              for (const { topic, messages } of topicMessages) {
                for (const message of messages) partitioner?.({ topic, message, partitionMetadata })
              }
              return [{ topicName: 'orders', partition: 0, errorCode: 0, baseOffset: '5' }]
            },
          } as never
        },
      },
    })
    const events = Array.from({ length: 20 }, (_, n) => outboxEvent({ aggregateId: String(n) }))
    const results = await publisher.publish(events)
    const sent = results.filter((result) => result.ok)
    const unsent = results.filter((result) => !result.ok)
    expect(sent.length).toBeGreaterThan(0)
    expect(unsent.length).toBeGreaterThan(0)
    expect(unsent).toMatchObject(unsent.map(() => ({ kind: 'transient', blames: 'topic' })))
  })

  it('finds another broker when the first one never answers, if brokers is a function that shuffles', async () => {
    const [broker] = kafkaBrokers()
    const silent = await startProxy({ port: Number(broker!.split(':')[1]) })
    silent.halfOpen()
    const brokers = [`127.0.0.1:${silent.port}`, broker!]
    // In turn instead of at random, so that the first producer does begin with the silent one.
    let calls = 0
    const inTurn = async () => (calls++ === 0 ? brokers : brokers.toReversed())
    const kafka = new Kafka({ brokers: inTurn, logLevel: logLevel.NOTHING, requestTimeout: 1_000 })
    const publisher = kafkaPublisher({ kafka, requestTimeout: '1s', retries: 0 })
    const topic = await openTopic()
    const event = outboxEvent({ topic })
    await waitUntil(async () => (await publisher.publish([event])).every(({ ok }) => ok), {
      message: 'the event was sent through the other broker',
      timeoutMs: 20_000,
    })
    void publisher.disconnect?.()
    await silent.stop()
    expect(await readAll(topic)).toHaveLength(1)
  })

  it('sends through a producer that somebody else connects and closes', async () => {
    const topic = await openTopic()
    const producer = quietKafka(kafkaBrokers()).producer()
    await producer.connect()
    const publisher = kafkaPublisher({ producer })
    expect(await publisher.publish([outboxEvent({ topic })])).toMatchObject([{ ok: true }])
    await publisher.disconnect?.()
    // Still connected: the publisher did not open it, so it does not close it.
    await producer.send({ topic, messages: [{ value: 'by hand' }] })
    await producer.disconnect()
    expect(await readAll(topic)).toHaveLength(2)
  })
})

// A fake stands in for the producer: errors of this kind, at this moment, cannot be had from a broker.
describe('kafkaPublisher, when a request fails', () => {
  const protocolError = (type: string) => Object.assign(new Error(type), { type })

  /** Each request is answered by the next of the answers: an error, or an ack for each topic. */
  function failing(answers: (Error | null)[], options: { maxRequestBytes?: number } = {}) {
    const requests: string[][] = []
    const producer = {
      sendBatch: async ({ topicMessages = [] }: ProducerBatch) => {
        requests.push(
          topicMessages.flatMap(({ messages }) => messages.map(({ value }) => String(value))),
        )
        const error = answers.shift()
        if (error) throw error
        return topicMessages.map(({ topic: topicName }) => {
          return { topicName, partition: 0, errorCode: 0, baseOffset: '0' }
        })
      },
    }
    return { publisher: kafkaPublisher({ producer, ...options }), requests }
  }
  const events = (...topics: string[]) =>
    topics.map((topic, n) => outboxEvent({ topic, payload: String(n), aggregateId: 'same' }))
  const verdicts = (results: readonly PublishResult[]) =>
    results.map((result) => (result.ok ? 'ok' : result.kind))

  it('holds the requests after one that failed for the broker', async () => {
    const { publisher, requests } = failing([null, new Error('ECONNRESET')], { maxRequestBytes: 1 })
    const results = await publisher.publish(events('a', 'a', 'a', 'a'))
    expect(verdicts(results)).toEqual(['ok', 'transient', 'held', 'held'])
    expect(requests).toEqual([['0'], ['1']])
  })

  it('does not try the parts of a request that failed for the broker', async () => {
    const { publisher, requests } = failing([new Error('ECONNRESET')])
    const results = await publisher.publish(events('a', 'a'))
    expect(results).toMatchObject(results.map(() => ({ kind: 'transient', blames: 'broker' })))
    expect(requests).toHaveLength(1)
  })

  it('sends the topics apart, so that the trouble of one is not that of another', async () => {
    const { publisher, requests } = failing([protocolError('NOT_ENOUGH_REPLICAS')])
    const others = events('b').map((event) => ({ ...event, aggregateId: 'other', payload: '9' }))
    const results = await publisher.publish([...events('a', 'a'), ...others])
    expect(verdicts(results)).toEqual(['transient', 'transient', 'ok'])
    expect(requests).toEqual([['0', '1'], ['9']])
  })

  it('lets nothing of a topic go after a part of it that failed', async () => {
    const answers = [protocolError('INVALID_RECORD'), protocolError('NOT_LEADER_FOR_PARTITION')]
    const { publisher, requests } = failing(answers)
    const results = await publisher.publish(events('a', 'a', 'a', 'a'))
    expect(verdicts(results)).toEqual(['transient', 'transient', 'held', 'held'])
    expect(requests).toEqual([
      ['0', '1', '2', '3'],
      ['0', '1'],
    ])
  })
})

it('begins no request after the time in which it has promised to settle', async () => {
  const answer = defer()
  const requests: string[] = []
  const producer = {
    connect: async () => {},
    sendBatch: async ({ topicMessages = [] }: ProducerBatch) => {
      requests.push(topicMessages[0]!.topic)
      await answer.promise
      throw new Error('ECONNRESET')
    },
  }
  const clock = vi.spyOn(performance, 'now')
  try {
    const publisher = kafkaPublisher({
      kafka: { producer: () => producer as never },
      requestTimeout: '5s',
    })
    // The first event of an unknown topic goes alone; the second waits for it.
    const publishing = publisher.publish([outboxEvent({ topic: 'a' }), outboxEvent({ topic: 'a' })])
    await waitUntil(() => requests.length === 1, { message: 'the first request was sent' })
    const now = performance.now()
    clock.mockImplementation(() => now + 5_001)
    answer.resolve()
    expect(await publishing).toMatchObject([{ kind: 'transient' }, { kind: 'held' }])
    expect(requests).toEqual(['a'])
  } finally {
    clock.mockRestore()
  }
})

it('asks every replica for its ack, of a producer that cannot lose a batch as a duplicate', async () => {
  const asked: object[] = []
  const kafka = {
    producer: (config?: object) => {
      asked.push(config ?? {})
      return {
        connect: async () => {},
        sendBatch: async (batch: object) => {
          asked.push(batch)
          return []
        },
      } as never
    },
  }
  await kafkaPublisher({ kafka }).publish([outboxEvent()])
  expect(asked).toMatchObject([{ idempotent: false }, { acks: -1 }])
})

it('names no partition where a foreign producer cannot tell which one it was', async () => {
  const acks = [0, 1].map((partition) => {
    return { topicName: 'orders', partition, errorCode: 0, baseOffset: '0' }
  })
  const publisher = kafkaPublisher({ producer: { sendBatch: async () => acks } })
  expect(await publisher.publish([outboxEvent()])).toMatchObject([
    { ok: true, partition: null, offset: null },
  ])
})

it('reckons with kafkajs going on for as long as all its tries may take', () => {
  const producer = { sendBatch: async () => [] }
  const publisher = kafkaPublisher({ producer, retries: 4, requestTimeout: '20s' })
  expect(publisher.settlesWithinMs).toBeGreaterThanOrEqual(5 * 20_000)
})

it('wants either a client or a producer', () => {
  expect(() => kafkaPublisher({})).toThrow(/takes either kafka .* or producer/)
  expect(() => kafkaPublisher(undefined as never)).toThrow(/takes an object with options/)
  expect(() => kafkaPublisher({ kafka: {} as never })).toThrow(/kafka must be a kafkajs client/)
  expect(() => kafkaPublisher({ producer: {} as never })).toThrow(/producer must be a connected/)
  expect(() => kafkaPublisher({ kafak: {} } as never)).toThrow(/did you mean 'kafka'/)
})

it('says what to write when it gets a client without braces around it', () => {
  const kafka = quietKafka(['localhost:9092'])
  expect(() => kafkaPublisher(kafka as never)).toThrow(
    /a client; write kafkaPublisher\({ kafka }\)/,
  )
  expect(() => kafkaPublisher(kafka.producer() as never)).toThrow(
    /a producer; write kafkaPublisher\({ producer }\)/,
  )
})

type TopicMessages = { topic: string; messages: { key: string; value: string }[] }
