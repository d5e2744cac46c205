// What no broker can be made to do: leave a partition out of a response that reports success.
import { expect, it } from 'vitest'
import { KafkaBatch } from '../../../../src/publishers/kafka/batch.ts'
import { ProducerLines } from '../../../../src/publishers/kafka/producer-lines.ts'
import {
  type Line,
  type TextProducer,
  TopicSend,
} from '../../../../src/publishers/platformatic-kafka/topic-send.ts'
import { outboxEvent } from '../../../support/doubles/sample-events.ts'

/** A producer for a topic with two partitions on one broker, which acks what the test says. */
function lineOf(acked: readonly number[]) {
  const sends: unknown[] = []
  const producer = {
    metadata: async () => {
      const partitions = [{ leader: 1 }, { leader: 1 }]
      return { brokers: new Map([[1, {}]]), topics: new Map([['orders', { partitions }]]) }
    },
    send: async (options: unknown) => {
      sends.push(options)
      return { offsets: acked.map((partition) => ({ topic: 'orders', partition, offset: 5n })) }
    },
    clearMetadata() {},
  }
  const line: Line = {
    producer: producer as unknown as TextProducer,
    connect: async () => {},
    disconnect: async () => {},
  }
  return { line, sends }
}

it('blames the topic for an ack that is missing in a success, and leaves it to the outbox to send again', async () => {
  const { line, sends } = lineOf([0])
  const events = ['0', '1'].map((aggregateId) => outboxEvent({ topic: 'orders', aggregateId }))
  const messages = events.map(() => ({ value: '{}', headers: {}, contentType: undefined }))
  const batch = new KafkaBatch(events, messages, {}, performance.now() + 60_000)
  const send = new TopicSend('orders', batch, {
    lines: new ProducerLines(() => line),
    choose: Number,
    retries: 2,
    maxRequestBytes: 900_000,
    requestTimeoutMs: 30_000,
  })
  await send.run(batch.admit(batch.entries))
  expect(batch.results()).toMatchObject([
    { ok: true, partition: 0, offset: '5' },
    {
      ok: false,
      kind: 'transient',
      blames: 'topic',
      error: { message: expect.stringMatching(/no acknowledgement .* 'orders'/) },
    },
  ])
  expect(sends).toHaveLength(1)
})
