// A fake stands in for the producer of @confluentinc/kafka-javascript: where there is no binary of it to download it
// has to be compiled, so it is not installed with the others. The fake does what version 1.10.1 was seen to do on a
// real broker; docs/guides/kafka.md says what was tried with that one.
import { describe, expect, it } from 'vitest'
import type { PublishResult } from '../../../../src/index.ts'
import { kafkaPublisher } from '../../../../src/publishers/kafka/kafka-publisher.ts'
import { classifyKafkaError } from '../../../../src/publishers/kafka/errors.ts'
import { defer } from '../../../support/timing/deferred.ts'
import { outboxEvent } from '../../../support/doubles/sample-events.ts'

type Sent = { key: string; value: unknown; headers: unknown; partition?: number }
type Batch = { acks?: number; topicMessages?: { topic: string; messages: Sent[] }[] }

const withCode = (code: number, type?: string) =>
  Object.assign(new Error('of librdkafka'), { code, type })

/** `answer` decides by the value of a message: an error, or nothing for an ack. */
function fakeConfluent(answer: (value: string) => Promise<Error | undefined> | Error | undefined) {
  const sent: string[] = []
  const producer = {
    dependentAdmin: () => {},
    async sendBatch(batch: Batch) {
      if ('acks' in batch) throw withCode(-186, 'ERR__INVALID_ARG')
      const acks = []
      for (const { topic, messages } of batch.topicMessages ?? []) {
        for (const message of messages) {
          if (Array.isArray(message.headers)) throw new TypeError('headers came twice')
          const value = String(message.value)
          sent.push(value)
          message.headers = Object.entries(message.headers as object).map(([k, v]) => ({ [k]: v }))
          message.partition = -1
          const error = await answer(value)
          if (error) throw error
          acks.push({ topicName: topic, partition: 2, errorCode: 0, baseOffset: '7' })
        }
      }
      return acks
    },
  }
  return { publisher: kafkaPublisher({ producer: producer as never }), producer, sent }
}

const event = (value: number, aggregateId: string, topic = 'orders') =>
  outboxEvent({ payload: String(value), aggregateId, topic })
const verdicts = (results: readonly PublishResult[]) =>
  results.map((result) => (result.ok ? 'ok' : result.kind))

describe('kafkaPublisher with a Confluent producer', () => {
  it('sends each event by itself, with the partition and offset that it got', async () => {
    const { publisher, sent } = fakeConfluent(() => undefined)
    const results = await publisher.publish([event(1, 'a'), event(2, 'a')])
    expect(results).toMatchObject(results.map(() => ({ ok: true, partition: 2, offset: '7' })))
    expect(sent).toEqual(['1', '2'])
  })

  it('waits within an aggregate for the event before, and not for other aggregates', async () => {
    const ack = defer<undefined>()
    const { publisher, sent } = fakeConfluent((value) => (value === '1' ? ack.promise : undefined))
    const batch = [event(1, 'a'), event(2, 'a'), event(3, 'b'), event(4, 'b')]
    const publishing = publisher.publish(batch)
    await expect.poll(() => sent).toEqual(['1', '3', '4'])
    ack.resolve(undefined)
    expect(verdicts(await publishing)).toEqual(['ok', 'ok', 'ok', 'ok'])
    expect(sent).toEqual(['1', '3', '4', '2'])
  })

  it('blames one event for what is its own fault, and sends nothing twice', async () => {
    const { publisher, sent } = fakeConfluent((value) =>
      value === '2' ? withCode(10, 'ERR_MSG_SIZE_TOO_LARGE') : undefined,
    )
    const results = await publisher.publish([event(1, 'a'), event(2, 'a'), event(3, 'a')])
    expect(verdicts(results)).toEqual(['ok', 'permanent', 'ok'])
    expect(sent).toEqual(['1', '2', '3'])
  })

  it('holds what follows an event that was not delivered, and asks only once', async () => {
    const { publisher, sent } = fakeConfluent((value) =>
      value === '1' ? withCode(3, 'ERR_UNKNOWN_TOPIC_OR_PART') : undefined,
    )
    const results = await publisher.publish([event(1, 'a'), event(2, 'a'), event(3, 'b')])
    expect(verdicts(results)).toEqual(['transient', 'held', 'ok'])
    expect(sent).toEqual(['1', '3'])
  })

  it('reckons with librdkafka holding on to a message for as long as it does by default', () => {
    const { publisher } = fakeConfluent(() => undefined)
    expect(publisher.settlesWithinMs).toBeGreaterThanOrEqual(2 * 300_000)
  })

  it('likes no large claims, of which an aggregate would go out one by one', () => {
    expect(fakeConfluent(() => undefined).publisher.batchSize).toBeUndefined()
    const producer = { sendBatch: async () => [] }
    expect(kafkaPublisher({ producer }).batchSize).toBe(1_000)
  })

  it.each(['retries', 'maxRequestBytes'])('refuses %s, which would do nothing', (option) => {
    const { producer } = fakeConfluent(() => undefined)
    expect(() => kafkaPublisher({ producer: producer as never, [option]: 5 })).toThrow(
      new RegExp(`${option} has no effect on a Confluent producer`),
    )
  })

  it('says how its client is used when it is given for one of kafkajs', () => {
    const kafka = {
      producer: (config: object) => {
        if ('idempotent' in config) throw new Error('must be moved to the kafkaJS block')
      },
    }
    expect(() => kafkaPublisher({ kafka: kafka as never })).toThrow(
      /kafka must be a kafkajs client.*connect a producer and pass it as producer/,
    )
  })
})

describe('an error of librdkafka', () => {
  it.each([
    [10, 'ERR_MSG_SIZE_TOO_LARGE', 'permanent', undefined],
    [10, undefined, 'permanent', undefined],
    [17, 'ERR_TOPIC_EXCEPTION', 'permanent', undefined],
    [29, 'ERR_TOPIC_AUTHORIZATION_FAILED', 'permanent', undefined],
    [87, 'ERR_INVALID_RECORD', 'permanent', undefined],
    [3, 'ERR_UNKNOWN_TOPIC_OR_PART', 'transient', 'topic'],
    [-188, 'ERR__UNKNOWN_TOPIC', 'transient', 'topic'],
    [19, 'ERR_NOT_ENOUGH_REPLICAS', 'transient', 'topic'],
    [-192, 'ERR__MSG_TIMED_OUT', 'transient', 'broker'],
    [-184, undefined, 'transient', 'broker'],
    [-172, 'ERR__STATE', 'transient', 'broker'],
  ] as const)('with the code %i (%s) is %s %s', (code, type, kind, blames) => {
    expect(classifyKafkaError('orders', withCode(code, type))).toMatchObject({
      kind,
      ...(blames && { blames }),
    })
  })

  it('is called by its name when nobody refused anything', () => {
    const { error } = classifyKafkaError('orders', withCode(-192, 'ERR__MSG_TIMED_OUT'))
    expect(error.message).toBe("could not deliver to the topic 'orders': ERR__MSG_TIMED_OUT")
  })
})
