// What every publisher has to do, whatever is behind it. Each publisher's own test file runs this suite
// against the real thing.
import { describe, expect, it } from 'vitest'
import type { OutboxEvent, Publisher, PublishResult } from '../../../src/index.ts'
import { outboxEvent } from '../doubles/sample-events.ts'
import { uniqueName } from '../doubles/unique-name.ts'

/** What arrived at the far end, in its order there. */
type Arrival = {
  readonly topic: string
  readonly key: string
  readonly payload: unknown
  readonly headers: Readonly<Record<string, string>>
}

export type PublisherUnderTest = {
  readonly publisher: Publisher
  /** A destination that is ready for events. */
  readonly openTopic: () => Promise<string>
  /** Everything that has arrived there so far. */
  readonly arrivals: (topic: string) => Promise<readonly Arrival[]>
  /** An event that this publisher cannot deliver through no fault of the destination. */
  readonly poison: (topic: string) => OutboxEvent
  readonly close: () => Promise<void>
}

export function describePublisher(name: string, open: () => Promise<PublisherUnderTest>): void {
  describe(`${name}, as every publisher`, () => {
    const withPublisher = (check: (tested: PublisherUnderTest) => Promise<void>) => async () => {
      const tested = await open()
      try {
        await check(tested)
      } finally {
        await tested.publisher.disconnect?.()
        await tested.close()
      }
    }

    it(
      'answers an empty batch with no results',
      withPublisher(async ({ publisher }) => {
        expect(await publisher.publish([])).toEqual([])
      }),
    )

    it(
      'connects by itself, and answers each event with its topic and key, in the order given',
      withPublisher(async ({ publisher, openTopic }) => {
        const topics = [await openTopic(), await openTopic()]
        const events = Array.from({ length: 20 }, (_, n) => outboxEvent({ topic: topics[n % 2]! }))
        const results = await publisher.publish(events)
        expect(results).toMatchObject(
          events.map((event) => ({ ok: true, topic: event.topic, key: event.aggregateId })),
        )
      }),
    )

    it(
      'delivers the payload and the headers as they are',
      withPublisher(async ({ publisher, openTopic, arrivals }) => {
        const topic = await openTopic()
        const event = outboxEvent({
          topic,
          payload: '{"text":"é😀\\n\\"","n":1.5,"deep":[null,{}]}',
          headers: {
            tenant: 'acmé',
            'correlation-id': 'c-1',
            traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
          },
        })
        await publisher.publish([event])
        const [arrived] = await arrivals(topic)
        expect(arrived).toMatchObject({ topic, key: event.aggregateId })
        expect(arrived?.payload).toEqual(JSON.parse(event.payload))
        expect(arrived?.headers).toMatchObject(event.headers)
      }),
    )

    it(
      'keeps the order of each aggregate within a batch and from batch to batch',
      withPublisher(async ({ publisher, openTopic, arrivals }) => {
        const topic = await openTopic()
        const keys = Array.from({ length: 5 }, () => uniqueName('order'))
        for (let batch = 0; batch < 4; batch += 1) {
          const events = Array.from({ length: 50 }, (_, n) => {
            const payload = String(batch * 50 + n)
            return outboxEvent({ topic, aggregateId: keys[n % 5]!, payload })
          })
          await publisher.publish(events)
        }
        const arrived = await arrivals(topic)
        expect(arrived).toHaveLength(200)
        for (const key of keys) {
          const sequence = arrived
            .filter((one) => one.key === key)
            .map((one) => Number(one.payload))
          expect(sequence).toEqual(sequence.toSorted((a, b) => a - b))
        }
      }),
    )

    it(
      'fails the poisonous event alone and delivers its neighbours once',
      withPublisher(async ({ publisher, openTopic, arrivals, poison }) => {
        const topic = await openTopic()
        const bad = poison(topic)
        const events = [outboxEvent({ topic }), bad, outboxEvent({ topic })]
        const results = await publisher.publish(events)
        expect(results.map(verdictOf)).toEqual(['ok', expect.not.stringMatching('ok'), 'ok'])
        expect((await arrivals(topic)).map(({ key }) => key).toSorted()).toEqual(
          [events[0]!.aggregateId, events[2]!.aggregateId].toSorted(),
        )
      }),
    )

    it(
      'holds what follows an event that failed for good, when told to, and nothing else',
      withPublisher(async ({ publisher, openTopic, arrivals, poison }) => {
        const topic = await openTopic()
        const bad = poison(topic)
        const follower = () => outboxEvent({ topic, aggregateId: bad.aggregateId })
        const other = outboxEvent({ topic })
        const events = [bad, follower(), other, follower()]
        const results = await publisher.publish(events, { deadLettersHold: true })
        expect(results.map(verdictOf)).toEqual([expect.any(String), 'held', 'ok', 'held'])
        expect((await arrivals(topic)).map(({ key }) => key)).toEqual([other.aggregateId])
      }),
    )

    it(
      'sends several batches at the same time',
      withPublisher(async ({ publisher, openTopic, arrivals }) => {
        const topic = await openTopic()
        const batches = Array.from({ length: 8 }, () => [
          outboxEvent({ topic }),
          outboxEvent({ topic }),
        ])
        const results = await Promise.all(batches.map((batch) => publisher.publish(batch)))
        expect(results.flat().map(verdictOf)).toEqual(Array(16).fill('ok'))
        expect(await arrivals(topic)).toHaveLength(16)
      }),
    )

    it(
      'can be closed and used again',
      withPublisher(async ({ publisher, openTopic, arrivals }) => {
        const topic = await openTopic()
        await publisher.connect?.()
        await publisher.disconnect?.()
        await publisher.disconnect?.()
        await publisher.publish([outboxEvent({ topic })])
        expect(await arrivals(topic)).toHaveLength(1)
      }),
    )
  })
}

function verdictOf(result: PublishResult): string {
  return result.ok ? 'ok' : result.kind
}
