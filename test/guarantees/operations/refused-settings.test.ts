// Settings under which an event could be sent twice in normal running, or out of order, are refused before
// anything runs, with both values and the remedy.
import { expect, it } from 'vitest'
import type { OutboxOptions, Publisher } from '../../../src/index.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import { quietKafka, useFixture } from '../../support/fixture.ts'

const fixture = useFixture()
const kafka = quietKafka(['localhost:1'])
const custom = (timing: Partial<Publisher>): Publisher => {
  return { name: 'custom', publish: async () => [], ...timing }
}

type Settings = Partial<OutboxOptions<typeof fixture.db>> & Pick<OutboxOptions, 'publisher'>

it.each<[string, Settings, RegExp]>([
  [
    'a lease that ends before a send counts as lost',
    { publisher: kafkaPublisher({ kafka }), threshold: '5s', publishTimeout: '5s' },
    /threshold must be longer than publishTimeout \(5s\), got 5s; raise threshold or lower publishTimeout/,
  ],
  [
    'a Kafka client that is waited for longer than it says it takes',
    {
      publisher: kafkaPublisher({ kafka, requestTimeout: '1s', retries: 0 }),
      threshold: '1m',
      publishTimeout: '20s',
    },
    /kafka declares that a send settles within 17s, but the outbox waits for 20s; lower publishTimeout/,
  ],
  [
    'a Kafka client that nobody could wait for',
    { publisher: kafkaPublisher({ kafka, requestTimeout: '24d', retries: 5 }) },
    /the publisher kafka may take \d+ ms to give up on a send, .* lower its timeout or its retries/,
  ],
  [
    'a publisher that never says when it gives up',
    { publisher: custom({ settlesWithinMs: Number.POSITIVE_INFINITY }) },
    /the publisher custom may take Infinity ms to give up on a send/,
  ],
  [
    'a publisher whose rows would be let go while it is still waited for',
    { publisher: custom({ timeoutMs: 2_000, settlesWithinMs: 1_000 }) },
    /settles within 1s, but the outbox waits for 2s; lower the publisher's timeoutMs or raise its settlesWithinMs/,
  ],
  [
    'a lock for an order that is given up',
    { publisher: custom({}), lockKeys: true, order: 'none' },
    /lockKeys: true has no effect with order: 'none', which keeps no order; remove one of them/,
  ],
  [
    'dead letters that hold an order that is given up',
    { publisher: custom({}), onDeadLetter: 'hold', order: 'none' },
    /onDeadLetter: 'hold' has no effect with order: 'none'/,
  ],
  [
    'a retention that would let go of what dead letters hold',
    { publisher: custom({}), onDeadLetter: 'hold', deadLetterRetention: '30d' },
    /deadLetterRetention would silently delete .* release the events that onDeadLetter: 'hold' keeps back/,
  ],
])('refuses %s', (_, settings, message) => {
  expect(() => fixture.outbox(settings)).toThrow(message)
  expect(() => fixture.outbox(settings)).toThrow(
    expect.objectContaining({ code: 'OPTIONS_INVALID' }),
  )
})
