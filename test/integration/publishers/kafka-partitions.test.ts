// Every client writes a key to the same partition, so an application can change its client, and services in other languages
// can write to the same topics, without moving an aggregate. Compared by what a real broker acked.
import { expect, it } from 'vitest'
import { openTopic } from '../../support/conformance/kafka-conformance.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'
import { describeWithKafka, describeWithOwnKafka, kafkaBrokers } from '../../support/fixture.ts'
import { kafkaClient } from '../../support/kafka-clients.ts'
import { sendWithJava } from '../../support/servers/java-producer.ts'

/** Numbers, names with characters of two to four bytes in UTF-8, and ids. */
const KEYS = Array.from({ length: 10_000 }, (_, n) => {
  if (n % 3 === 0) return String(n)
  if (n % 3 === 1) return `${n}-\u00e4\u4e2d${String.fromCodePoint(0x1f600 + (n % 50))}`
  return crypto.randomUUID()
})

describeWithKafka('10,000 keys', () => {
  describeWithOwnKafka('with Java for comparison', () => {
    it.each(['kafkajs', 'platformatic'])(
      'are in the same partitions as with the producer of Java, with %s',
      { timeout: 120_000 },
      async (name) => {
        const topic = await openTopic()
        const publisher = kafkaClient(name).publisher(kafkaBrokers())
        const events = KEYS.map((aggregateId) => outboxEvent({ topic, aggregateId }))
        const results = await publisher.publish(events)
        await publisher.disconnect?.()
        const partitions = results.map((one) => (one.ok ? one.partition : one.error.message))
        expect(new Set(partitions)).toEqual(new Set([0, 1, 2]))
        expect(partitions).toEqual(await sendWithJava(kafkaBrokers(), topic, KEYS))
      },
    )
  })
})
