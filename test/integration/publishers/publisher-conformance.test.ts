// The checks that are exported for publishers from outside notice each rule that a publisher breaks. The real publishers run
// them in the files beside this one.
import { describe, expect, it } from 'vitest'
import type { OutboxEvent, Publisher, PublishResult } from '../../../src/index.ts'
import {
  type Arrival,
  publisherChecks,
  type PublisherUnderTest,
} from '../../../src/publishers/conformance.ts'

/** The smallest publisher that keeps every rule: destinations in memory. */
function inMemory(): PublisherUnderTest & { readonly deliver: (event: OutboxEvent) => void } {
  const topics = new Map<string, Arrival[]>()
  const deliver = ({ topic, aggregateId: key, payload, headers }: OutboxEvent) => {
    topics.get(topic)!.push({ key, payload: JSON.parse(payload), headers })
  }
  return {
    deliver,
    publisher: {
      name: 'memory',
      orderScope: 'topic',
      async publish(events, { deadLettersHold = false } = {}) {
        const failed = new Set<number>()
        return events.map((event): PublishResult => {
          const { topic, aggregateId: key, lane } = event
          if (failed.has(lane)) return { ok: false, kind: 'held', error: new Error('behind') }
          if (event.type !== 'Poison') {
            deliver(event)
            return { ok: true, topic, key, partition: null, offset: null }
          }
          if (deadLettersHold) failed.add(lane)
          return { ok: false, kind: 'permanent', error: new Error('no') }
        })
      },
    },
    async openTopic() {
      const topic = crypto.randomUUID()
      topics.set(topic, [])
      return topic
    },
    arrivals: async (topic) => [...topics.get(topic)!],
    poison: (event) => ({ ...event, type: 'Poison' }),
  }
}

type Publish = Publisher['publish']
type Broken = (publish: Publish, deliver: (event: OutboxEvent) => void) => Partial<Publisher>

/** A rule that is broken, and the checks that notice. */
const BROKEN: readonly [string, Broken, readonly RegExp[]][] = [
  [
    'makes up a result',
    (publish) => ({
      publish: async (events) => (events.length > 0 ? publish(events) : [{ ok: true } as never]),
    }),
    [/an empty batch/],
  ],
  [
    'returns results in another order',
    (publish) => ({
      publish: async (events, rules) => (await publish(events, rules)).toReversed(),
    }),
    [/in the order given/, /goes on behind/],
  ],
  [
    'loses headers',
    (publish) => ({
      publish: (events, rules) =>
        publish(
          events.map((event) => ({ ...event, headers: {} })),
          rules,
        ),
    }),
    [/the headers as they are/],
  ],
  [
    'changes the payload',
    (publish) => ({
      publish: (events, rules) =>
        publish(
          events.map((event) => ({ ...event, payload: JSON.stringify(event.payload) })),
          rules,
        ),
    }),
    [/the payload and the headers/],
  ],
  [
    'sends a batch backwards',
    (publish) => ({
      publish: async (events, rules) => (await publish(events.toReversed(), rules)).toReversed(),
    }),
    [/keeps the order of each aggregate/],
  ],
  [
    'fails the whole batch',
    (publish) => ({
      async publish(events, rules) {
        if (events.every(({ type }) => type !== 'Poison')) return publish(events, rules)
        return events.map(() => ({ ok: false, kind: 'permanent', error: new Error('no') }) as const)
      },
    }),
    [/delivers its neighbours once/],
  ],
  [
    'sends the neighbours twice',
    (publish, deliver) => ({
      async publish(events, rules) {
        if (events.some(({ type }) => type === 'Poison')) deliver(events[0]!)
        return publish(events, rules)
      },
    }),
    [/delivers its neighbours once/],
  ],
  [
    'goes on behind any failure',
    (publish) => ({
      publish: async (events, rules) =>
        (await publish(events, rules)).map((result) =>
          !result.ok && result.kind === 'permanent' ? { ...result, kind: 'rejected' } : result,
        ),
    }),
    [/holds what follows any other failure/],
  ],
  [
    'does not know deadLettersHold',
    (publish) => ({
      publish: (events) => publish(events),
    }),
    [/with deadLettersHold/],
  ],
  [
    'sends one batch at a time and drops the rest',
    (publish) => {
      let isBusy = false
      return {
        async publish(events, rules) {
          if (isBusy) return events.map(() => ({ ok: true }) as never)
          isBusy = true
          await Promise.resolve()
          isBusy = false
          return await publish(events, rules)
        },
      }
    },
    [/several batches at the same time/],
  ],
  [
    'cannot be used again',
    (publish) => {
      let isClosed = false
      return {
        disconnect: async () => void (isClosed = true),
        async publish(events, rules) {
          if (isClosed) throw new Error('closed')
          return await publish(events, rules)
        },
      }
    },
    [/can be closed twice and used again/],
  ],
]

describe('the checks for publishers', () => {
  it.each(publisherChecks)('pass a publisher that keeps every rule: $name', async ({ run }) => {
    await expect(run(inMemory)).resolves.toBeUndefined()
  })

  it.each(BROKEN)('notice a publisher that %s', async (_, broken, noticed) => {
    const open = () => {
      const tested = inMemory()
      const { publisher } = tested
      return {
        ...tested,
        publisher: {
          ...publisher,
          ...broken((events, rules) => publisher.publish(events, rules), tested.deliver),
        },
      }
    }
    const failed: string[] = []
    for (const { name, run } of publisherChecks) {
      await run(open).catch(() => failed.push(name))
    }
    for (const name of noticed) expect(failed).toContainEqual(expect.stringMatching(name))
  })

  it('close what they opened, also after a failure', async () => {
    const closed: string[] = []
    const open = () => {
      const tested = inMemory()
      const publisher: Publisher = {
        ...tested.publisher,
        publish: async () => [],
        disconnect: async () => void closed.push('publisher'),
      }
      return { ...tested, publisher, close: async () => void closed.push('far end') }
    }
    const several = publisherChecks.find(({ name }) => name.startsWith('sends several'))!
    await expect(several.run(open)).rejects.toThrow('strictly deep-equal')
    expect(closed).toEqual(['publisher', 'far end'])
  })
})
