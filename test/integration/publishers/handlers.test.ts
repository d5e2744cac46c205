import { describe, expect, it } from 'vitest'
import { type HandledEvent, handlersPublisher } from '../../../src/publishers/handlers.ts'
import { defer } from '../../support/timing/deferred.ts'
import { describePublisher } from '../../support/conformance/publisher-conformance.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'

describePublisher('handlersPublisher', async () => {
  const handled: HandledEvent[] = []
  const OrderCompleted = (event: HandledEvent) => void handled.push(event)
  return {
    publisher: handlersPublisher({ handlers: { OrderCompleted } }),
    openTopic: async () => uniqueName('topic'),
    arrivals: async (topic) =>
      handled
        .filter((event) => event.topic === topic)
        .map(({ aggregateId: key, payload, headers }) => ({ key, payload, headers })),
    poison: (event) => ({ ...event, type: 'NobodyHandlesThis' }),
  }
})

describe('handlersPublisher', () => {
  it('holds the rest of an aggregate back when one of its events is rejected', async () => {
    const handled: unknown[] = []
    const publisher = handlersPublisher({
      handlers: {
        OrderCompleted: ({ payload }) => {
          if (payload === 1) throw new Error('no')
          handled.push(payload)
        },
      },
    })
    const events = [1, 2, 3].map((n) => outboxEvent({ aggregateId: 'same', payload: String(n) }))
    const other = outboxEvent({ aggregateId: 'other', payload: '4' })
    const results = await publisher.publish([...events, other])
    expect(results).toMatchObject([
      { ok: false, kind: 'rejected', error: { code: 'HANDLER_FAILED' } },
      { ok: false, kind: 'held' },
      { ok: false, kind: 'held' },
      { ok: true },
    ])
    expect(handled).toEqual([4])
  })

  it('ends a handler that takes too long, and tells it so', async () => {
    const aborted = defer()
    const publisher = handlersPublisher({
      timeout: '20ms',
      handlers: {
        OrderCompleted: async (_, signal) => {
          signal.addEventListener('abort', () => aborted.resolve())
          await new Promise(() => {})
        },
      },
    })
    const [result] = await publisher.publish([outboxEvent()])
    await aborted.promise
    expect(result).toMatchObject({
      kind: 'rejected',
      error: { code: 'HANDLER_TIMEOUT', message: expect.stringMatching(/took longer than 20ms/) },
    })
  })

  it('takes no new event of a batch on after one timeout, so that the rest gets recorded', async () => {
    const events = [1, 2].map(() => outboxEvent({ aggregateId: 'same' }))
    const publisher = handlersPublisher({
      timeout: '1s',
      handlers: {
        // Ends of itself, at a moment when the batch, which began before it, must not go on.
        OrderCompleted: () => {
          const begun = performance.now()
          while (performance.now() < begun + 1_001);
        },
      },
    })
    const results = await publisher.publish(events)
    expect(results).toMatchObject([{ ok: true }, { ok: false, kind: 'held' }])
  })

  it('reckons with a batch that takes its last event on just before its time is over', () => {
    const publisher = handlersPublisher({ handlers: {}, timeout: '3s' })
    expect(publisher).toMatchObject({ timeoutMs: 6_000, settlesWithinMs: 6_000 })
  })

  it('refuses handlers that are no functions', () => {
    expect(() => handlersPublisher({ handlers: { A: 1 as never } })).toThrow(/handler of 'A'/)
    expect(() => handlersPublisher({} as never)).toThrow(/takes handlers/)
    expect(() => handlersPublisher({ handler: {} } as never)).toThrow(/did you mean 'handlers'/)
  })
})
