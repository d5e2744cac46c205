import { isDeepStrictEqual } from 'node:util'
import { expect, it } from 'vitest'
import {
  createOutboxMatchers,
  outboxMatchers,
  type OutboxMatchers,
  recordingPublisher,
} from '../../../src/testing/testing.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'

declare module 'vitest' {
  // oxlint-disable-next-line typescript/no-explicit-any
  interface Matchers<T = any> extends OutboxMatchers<T> {}
}

expect.extend(outboxMatchers)

const id = '0190c0de-0000-7000-8000-000000000001'

async function published(...types: string[]) {
  const publisher = recordingPublisher()
  const secret = JSON.stringify({ card: '4711' })
  const events = types.map((type) => outboxEvent({ id, type, aggregateId: 'one', payload: secret }))
  await publisher.publish(events)
  return publisher
}

it('finds an event by any of its fields', async () => {
  const publisher = await published('Placed', 'Paid')
  expect(publisher).toHavePublished({ type: 'Paid' })
  expect(publisher).toHavePublished({ aggregateId: 'one', payload: { card: '4711' } })
  expect(publisher).toHavePublished({
    payload: expect.objectContaining({ card: expect.any(String) }),
  })
  expect(publisher).not.toHavePublished({ type: 'Shipped' })
  expect(publisher).not.toHavePublished({ type: 'Paid', payload: {} })
})

it('counts, and knows the order', async () => {
  const publisher = await published('Placed', 'Paid', 'Placed')
  expect(publisher).toHavePublishedTimes(3)
  expect(publisher).toHavePublishedTimes(2, { type: 'Placed' })
  expect(publisher).not.toHavePublishedTimes(1, { type: 'Placed' })
  expect(publisher).toHavePublishedInOrder([{ type: 'Paid' }, { type: 'Placed' }])
  expect(publisher).not.toHavePublishedInOrder([{ type: 'Paid' }, { type: 'Paid' }])
  expect(publisher).not.toHavePublishedNothing()
  expect(recordingPublisher()).toHavePublishedNothing()
})

type Verdict = { pass: boolean; message: () => string }

const LIST = `Published:\n  Placed ${id} of order one to orders`

it.each([
  [
    'toHavePublished',
    [{ type: 'Paid' }],
    `expected an event with { type: "Paid" } to be published\n${LIST}`,
  ],
  [
    'toHavePublished',
    [{ type: 'Placed', payload: { card: '1' } }],
    `expected an event with { type: "Placed", payload } to be published\n1 of those published differ in the payload alone\n${LIST}`,
  ],
  [
    'toHavePublishedTimes',
    [2, { type: 'Placed' }],
    `expected 2 events with { type: "Placed" } to be published, found 1\n${LIST}`,
  ],
  [
    'toHavePublishedInOrder',
    [[{ type: 'Placed' }, { type: 'Paid' }]],
    `expected an event with { type: "Paid" } to be published after one with { type: "Placed" }\n${LIST}`,
  ],
  ['toHavePublishedNothing', [], `expected nothing to be published\n${LIST}`],
] as const)('says in %s what was published, without payloads', async (name, given, message) => {
  const publisher = await published('Placed')
  const matcher = outboxMatchers[name] as (...given: unknown[]) => Verdict
  const verdict = Reflect.apply(matcher, { equals: isDeepStrictEqual }, [publisher, ...given])
  expect(verdict.pass).toBe(false)
  expect(verdict.message()).toBe(message)
})

it('shows payloads only on request', async () => {
  const publisher = await published('Placed')
  const { toHavePublished } = createOutboxMatchers({ payloads: true })
  const { message } = toHavePublished.call({ equals: Object.is }, publisher, {
    payload: { card: '1' },
  })
  expect(message()).toContain('payload: {"card":"1"}')
  expect(message()).toContain('{"payload":{"card":"4711"},"headers":{}}')
})

it('says what a matcher takes', async () => {
  expect(() => expect([]).toHavePublishedNothing()).toThrow('takes a recordingPublisher()')
  expect(() => expect(recordingPublisher()).not.toHavePublished({ tpye: 'A' } as never)).toThrow(
    "did you mean 'type'?",
  )
  expect(() => expect(recordingPublisher()).toHavePublishedInOrder([])).toThrow('got none')
  for (const times of [-1, 1.5, '1'] as number[]) {
    expect(() => expect(recordingPublisher()).not.toHavePublishedTimes(times)).toThrow(
      'takes a whole number',
    )
  }
})
