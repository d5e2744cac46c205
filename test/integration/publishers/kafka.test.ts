import type { ProducerBatch } from 'kafkajs'
import { describe, expect, it, vi } from 'vitest'
import type { PublishResult } from '../../../src/index.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import {
  describeWithKafka,
  describeWithOwnKafka,
  kafkaBrokers,
  quietKafka,
} from '../../support/fixture.ts'
import { startKafka } from '../../support/servers/kafka-server.ts'
import { describePublisher } from '../../support/conformance/publisher-conformance.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'
import { startProxy } from '../../support/servers/tcp-proxy.ts'
import { createTopic, readTopic } from '../../support/servers/topic-reader.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { defer } from '../../support/timing/deferred.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const open = () => kafkaPublisher({ kafka: quietKafka(kafkaBrokers()) })

async function openTopic() {
  const topic = uniqueName('topic')
  await createTopic(kafkaBrokers(), topic)
  return topic
}

async function readAll(topic: string) {
  const reader = await readTopic(kafkaBrokers(), topic)
  try {
    return await reader.readToEnd()
  } finally {
    await reader.stop()
  }
}

/** Larger than a broker takes by default, whatever else is in its batch. */
const tooLarge = (topic: string) =>
  outboxEvent({ topic, payload: JSON.stringify('x'.repeat(1_100_000)) })

describeWithKafka('kafkaPublisher', () => {
  describePublisher('kafkaPublisher', async () => ({
    publisher: open(),
    openTopic,
    arrivals: async (topic) =>
      (await readAll(topic)).map(({ key, value, headers }) => {
        return { topic, key: key ?? '', payload: JSON.parse(value ?? 'null'), headers }
      }),
    poison: tooLarge,
    close: async () => {},
  }))

  it('tells the partition and offset under which each event is stored', async () => {
    const publisher = open()
    const topics = [await openTopic(), await openTopic()]
    const events = Array.from({ length: 60 }, (_, n) => {
      return outboxEvent({ topic: topics[n % 2]!, aggregateId: `order-${n % 7}` })
    })
    const results = await publisher.publish(events)
    await publisher.disconnect?.()
    for (const topic of topics) {
      const stored = new Map(
        (await readAll(topic)).map((one) => [one.headers['event-id'], one] as const),
      )
      for (const [n, event] of events.entries()) {
        if (event.topic !== topic) continue
        const { partition, offset } = stored.get(event.id)!
        expect(results[n]).toMatchObject({ ok: true, partition, offset })
      }
    }
  })

  it('makes a message that is too large permanent, in the middle of others and alone', async () => {
    const publisher = open()
    const topic = await openTopic()
    const [alone] = await publisher.publish([tooLarge(topic)])
    await publisher.disconnect?.()
    expect(alone).toMatchObject({
      kind: 'permanent',
      error: { message: expect.stringMatching(/MESSAGE_TOO_LARGE/) },
    })
  })

  it('goes on behind an event that failed for good, unless it is told to hold', async () => {
    const publisher = open()
    const topic = await openTopic()
    const bad = tooLarge(topic)
    const follower = outboxEvent({ topic, aggregateId: bad.aggregateId })
    const results = await publisher.publish([bad, follower])
    await publisher.disconnect?.()
    expect(results).toMatchObject([{ ok: false, kind: 'permanent' }, { ok: true }])
    expect((await readAll(topic)).map(({ headers }) => headers['event-id'])).toEqual([follower.id])
  })

  it('splits a batch that a broker would refuse as a whole', async () => {
    const publisher = open()
    const topic = await openTopic()
    const payload = JSON.stringify('x'.repeat(100_000))
    const events = Array.from({ length: 30 }, () =>
      outboxEvent({ topic, payload, aggregateId: '1' }),
    )
    const results = await publisher.publish(events)
    await publisher.disconnect?.()
    expect(results.every((result) => result.ok)).toBe(true)
    const ids = (await readAll(topic)).map(({ headers }) => headers['event-id'])
    expect(ids).toEqual(events.map(({ id }) => id))
  })

  it('makes an event for an impossible topic permanent and delivers its neighbours', async () => {
    const publisher = open()
    const topic = await openTopic()
    const results = await publisher.publish([
      outboxEvent({ topic }),
      outboxEvent({ topic: 'no topic has blanks' }),
      outboxEvent({ topic }),
    ])
    await publisher.disconnect?.()
    expect(results).toMatchObject([{ ok: true }, { kind: 'permanent' }, { ok: true }])
    expect(await readAll(topic)).toHaveLength(2)
  })

  it('reports an unreachable broker as transient and keeps nothing of it', async () => {
    const kafka = quietKafka(['127.0.0.1:1'], { retry: { retries: 0 } })
    const publisher = kafkaPublisher({ kafka })
    const [result] = await publisher.publish([outboxEvent()])
    expect(result).toMatchObject({ kind: 'transient', blames: 'broker' })
    expect(result).toMatchObject({ error: { message: expect.stringMatching(/ECONNREFUSED/) } })
    await publisher.disconnect?.()
  })

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

  it('connects again after a first try that failed', async () => {
    const [broker] = kafkaBrokers()
    const proxy = await startProxy({ port: Number(broker!.split(':')[1]) })
    await proxy.refuse()
    const kafka = quietKafka([`127.0.0.1:${proxy.port}`], { retry: { retries: 0 } })
    const publisher = kafkaPublisher({ kafka })
    const topic = await openTopic()
    expect(await publisher.publish([outboxEvent({ topic })])).toMatchObject([{ kind: 'transient' }])
    await proxy.accept()
    expect(await publisher.publish([outboxEvent({ topic })])).toMatchObject([{ ok: true }])
    await publisher.disconnect?.()
    await proxy.stop()
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
    // The first event of an unknown topic waits for its turn.
    const publishing = publisher.publish([outboxEvent({ topic: 'a' }), outboxEvent({ topic: 'b' })])
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

type TopicMessages = { topic: string; messages: { key: string; value: string }[] }

describeWithKafka('a message that one partition refuses', () => {
  // A topic that takes less than the publisher is told: the refusal comes from the broker, per partition.
  async function openSmallTopic() {
    const topic = uniqueName('small')
    const admin = quietKafka(kafkaBrokers()).admin()
    await admin.connect()
    const configEntries = [{ name: 'max.message.bytes', value: '20000' }]
    await admin.createTopics({
      topics: [{ topic, numPartitions: 3, replicationFactor: 1, configEntries }],
      waitForLeaders: true,
    })
    await admin.disconnect()
    return topic
  }

  it('is found without sending its neighbours twice, or out of order', async () => {
    const publisher = open()
    const topic = await openSmallTopic()
    const bad = outboxEvent({ topic, payload: JSON.stringify('x'.repeat(30_000)) })
    const events = Array.from({ length: 33 }, (_, n) => {
      return n === 16 ? bad : outboxEvent({ topic, aggregateId: `k${n % 8}`, payload: String(n) })
    })
    const results = await publisher.publish(events)
    await publisher.disconnect?.()
    expect(results[16]).toMatchObject({ ok: false, kind: 'permanent' })
    expect(results.filter((result) => result.ok)).toHaveLength(32)
    const stored = await readAll(topic)
    expect(stored).toHaveLength(32)
    for (let partition = 0; partition < 3; partition += 1) {
      const values = stored.filter((one) => one.partition === partition).map((one) => +one.value!)
      expect(values).toEqual(values.toSorted((a, b) => a - b))
    }
  })

  it('sends the events of an aggregate that change topics in their order', async () => {
    const publisher = open()
    const [good, small] = [await openTopic(), await openSmallTopic()]
    const aggregateId = 'one'
    const results = await publisher.publish([
      outboxEvent({ aggregateId, topic: good, payload: '1' }),
      outboxEvent({ aggregateId, topic: small, payload: '2' }),
      outboxEvent({ aggregateId, topic: good, payload: '3' }),
    ])
    await publisher.disconnect?.()
    expect(results.every((result) => result.ok)).toBe(true)
    expect((await readAll(good)).map(({ value }) => value)).toEqual(['1', '3'])
  })
})

describeWithOwnKafka('a topic that is not there yet', () => {
  it('is transient for its own events, and no trouble for the others', async () => {
    const kafka = await startKafka({ settings: { 'auto.create.topics.enable': 'false' } })
    await createTopic(kafka.brokers, 'there')
    const client = quietKafka(kafka.brokers, { retry: { retries: 1, initialRetryTime: 50 } })
    const publisher = kafkaPublisher({ kafka: client, retries: 0 })
    const missing = [1, 2].map((n) => outboxEvent({ topic: 'missing', payload: String(n) }))
    const there = [1, 2].map((n) => outboxEvent({ topic: 'there', payload: String(n) }))
    const batch = [missing[0]!, there[0]!, missing[1]!, there[1]!]
    const results = await publisher.publish(batch)
    expect(results).toMatchObject([
      { kind: 'transient', blames: 'topic' },
      { ok: true },
      { ok: false },
      { ok: true },
    ])
    // An aggregate goes on elsewhere: no consumer sees an order across two topics.
    const ofOne = ['missing', 'there'].map((topic, lane) => {
      return outboxEvent({ topic, lane, aggregateId: 'one' })
    })
    expect(await publisher.publish(ofOne)).toMatchObject([{ kind: 'transient' }, { ok: true }])
    // While kafkajs asks for the missing topic it fails sends to others with the same words.
    for (let n = 0; n < 10; n += 1) {
      const sends = [missing, there, there, missing, there].map((one) => publisher.publish(one))
      const verdicts = (await Promise.all(sends)).map(([result]) => result?.ok)
      expect(verdicts).toEqual([false, true, true, false, true])
    }
    await createTopic(kafka.brokers, 'missing')
    expect(await publisher.publish(missing)).toMatchObject([{ ok: true }, { ok: true }])
    await publisher.disconnect?.()
    const reader = await readTopic(kafka.brokers, 'there')
    expect(await reader.readToEnd()).toHaveLength(63)
    await reader.stop()
    await kafka.stop()
  })
})
