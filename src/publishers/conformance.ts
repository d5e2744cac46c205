// `aftercommit/publisher-conformance`: what every publisher has to do, as checks that any test runner can run. Publishers that are
// written outside this package run them too. Each check opens a publisher of its own and closes it.
import assert from 'node:assert/strict'
import type { OutboxEvent } from '../event/event.ts'
import { laneOf } from '../event/lane.ts'
import type { PublishResult } from '../event/publish-result.ts'
import type { Publisher } from './publisher.ts'

/** An event as it was found at the far end. */
export interface Arrival {
  readonly key: string
  /** Parsed from JSON. */
  readonly payload: unknown
  /** At least those of the event. */
  readonly headers: Readonly<Record<string, string>>
}

/** A publisher, and the far end as the checks see it. */
export interface PublisherUnderTest {
  readonly publisher: Publisher
  /** Returns the name of a new, empty destination that is ready for events. */
  readonly openTopic: () => Promise<string>
  /** Everything that has arrived there so far, in the order of its arrival. */
  readonly arrivals: (topic: string) => Promise<readonly Arrival[]>
  /** Turns a good event of that destination into one that can never be delivered, such as one that is too large. */
  readonly poison: (event: OutboxEvent) => OutboxEvent
  /** Called after the publisher's own `disconnect()`. */
  readonly close?: () => Promise<void>
}

export interface PublisherCheck {
  /** A sentence, for the name of a test. */
  readonly name: string
  /** Rejects if the publisher does not do it. */
  readonly run: (open: () => PublisherUnderTest | Promise<PublisherUnderTest>) => Promise<void>
}

type Events = (overrides: Partial<OutboxEvent> & { topic: string }) => OutboxEvent

function check(
  name: string,
  run: (tested: PublisherUnderTest, eventOf: Events) => Promise<void>,
): PublisherCheck {
  return {
    name,
    async run(open) {
      const tested = await open()
      try {
        await run(tested, eventsFor(tested.publisher))
      } finally {
        await tested.publisher.disconnect?.()
        await tested.close?.()
      }
    },
  }
}

/** Events with the lanes that they would have in an outbox with this publisher. */
function eventsFor({ orderScope = 'publisher' }: Publisher): Events {
  const scopes = { byTopic: new Map(), otherwise: orderScope }
  return (overrides) => {
    const named = {
      id: crypto.randomUUID(),
      type: 'OrderCompleted',
      aggregateType: 'order',
      aggregateId: crypto.randomUUID(),
      ...overrides,
    }
    return {
      lane: laneOf(named, scopes),
      payload: '{"total":42}',
      headers: {},
      occurredAt: new Date(),
      leasedAt: new Date(),
      maxAttempts: 10,
      attempts: 0,
      seq: 1,
      ...named,
    }
  }
}

const verdictOf = (result: PublishResult) => (result.ok ? 'ok' : result.kind)
const verdictsOf = (results: readonly PublishResult[]) => results.map(verdictOf)
const keysOf = (arrived: readonly Arrival[]) => arrived.map(({ key }) => key)

export const publisherChecks: readonly PublisherCheck[] = [
  check('returns no results for an empty batch', async ({ publisher }) => {
    assert.deepEqual(await publisher.publish([]), [])
  }),

  check(
    'connects by itself, and returns the topic and key of each event, in the order given',
    async ({ publisher, openTopic }, eventOf) => {
      const topics = [await openTopic(), await openTopic()]
      const events = Array.from({ length: 20 }, (_, n) => eventOf({ topic: topics[n % 2]! }))
      const results = await publisher.publish(events)
      assert.deepEqual(
        results.map((result) => [result.ok, result.ok && result.topic, result.ok && result.key]),
        events.map(({ topic, aggregateId }) => [true, topic, aggregateId]),
      )
    },
  ),

  check(
    'delivers the payload and the headers as they are',
    async ({ publisher, openTopic, arrivals }, eventOf) => {
      const topic = await openTopic()
      const event = eventOf({
        topic,
        payload: '{"text":"é😀\\n\\"","n":1.5,"deep":[null,{}]}',
        headers: {
          tenant: 'acmé',
          'correlation-id': 'c-1',
          traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        },
      })
      assert.deepEqual(verdictsOf(await publisher.publish([event])), ['ok'])
      const [arrived] = await arrivals(topic)
      assert.equal(arrived?.key, event.aggregateId)
      assert.deepEqual(arrived.payload, JSON.parse(event.payload))
      assert.deepEqual({ ...arrived.headers, ...event.headers }, { ...arrived.headers })
    },
  ),

  check(
    'keeps the order of each aggregate within a batch and from batch to batch',
    async ({ publisher, openTopic, arrivals }, eventOf) => {
      const topic = await openTopic()
      const keys = Array.from({ length: 5 }, () => crypto.randomUUID())
      for (let batch = 0; batch < 4; batch += 1) {
        const events = Array.from({ length: 50 }, (_, n) =>
          eventOf({ topic, aggregateId: keys[n % 5]!, payload: String(batch * 50 + n) }),
        )
        await publisher.publish(events)
      }
      const arrived = await arrivals(topic)
      for (const [n, key] of keys.entries()) {
        const sequence = arrived.filter((one) => one.key === key).map(({ payload }) => payload)
        assert.deepEqual(
          sequence,
          Array.from({ length: 40 }, (_, of) => of * 5 + n),
        )
      }
    },
  ),

  check(
    'fails an event that cannot be delivered alone, and delivers its neighbours once',
    async ({ publisher, openTopic, arrivals, poison }, eventOf) => {
      const topic = await openTopic()
      const [before, after] = [eventOf({ topic }), eventOf({ topic })]
      const results = await publisher.publish([before, poison(eventOf({ topic })), after])
      const [first, bad, last] = verdictsOf(results)
      assert.deepEqual([results.length, first, last], [3, 'ok', 'ok'])
      assert.ok(bad === 'permanent' || bad === 'rejected' || bad === 'transient', `got ${bad}`)
      const keys = [before.aggregateId, after.aggregateId].toSorted()
      assert.deepEqual(keysOf(await arrivals(topic)).toSorted(), keys)
    },
  ),

  check(
    'goes on behind an event that failed for good, and holds what follows any other failure',
    async ({ publisher, openTopic, arrivals, poison }, eventOf) => {
      const topic = await openTopic()
      const bad = poison(eventOf({ topic }))
      const { aggregateId } = bad
      const events = [bad, eventOf({ topic, aggregateId }), eventOf({ topic })]
      const [failure, ...others] = verdictsOf(await publisher.publish(events))
      const goesOn = failure === 'permanent'
      assert.deepEqual(others, [goesOn ? 'ok' : 'held', 'ok'])
      const sent = events.slice(goesOn ? 1 : 2).map((event) => event.aggregateId)
      assert.deepEqual(keysOf(await arrivals(topic)).toSorted(), sent.toSorted())
    },
  ),

  check(
    'holds what follows an event that failed for good with deadLettersHold, and nothing else',
    async ({ publisher, openTopic, arrivals, poison }, eventOf) => {
      const topic = await openTopic()
      const bad = poison(eventOf({ topic }))
      const follower = () => eventOf({ topic, aggregateId: bad.aggregateId })
      const other = eventOf({ topic })
      const events = [bad, follower(), other, follower()]
      const results = await publisher.publish(events, { deadLettersHold: true })
      assert.deepEqual(verdictsOf(results).slice(1), ['held', 'ok', 'held'])
      assert.deepEqual(keysOf(await arrivals(topic)), [other.aggregateId])
    },
  ),

  check(
    'sends several batches at the same time',
    async ({ publisher, openTopic, arrivals }, eventOf) => {
      const topic = await openTopic()
      const batches = Array.from({ length: 8 }, () => [eventOf({ topic }), eventOf({ topic })])
      const results = await Promise.all(batches.map((batch) => publisher.publish(batch)))
      assert.deepEqual(verdictsOf(results.flat()), Array<string>(16).fill('ok'))
      assert.equal((await arrivals(topic)).length, 16)
    },
  ),

  check(
    'can be closed twice and used again',
    async ({ publisher, openTopic, arrivals }, eventOf) => {
      const topic = await openTopic()
      await publisher.connect?.()
      await publisher.disconnect?.()
      await publisher.disconnect?.()
      assert.deepEqual(verdictsOf(await publisher.publish([eventOf({ topic })])), ['ok'])
      assert.equal((await arrivals(topic)).length, 1)
    },
  ),
]
