import { expect, it } from 'vitest'
import { OutboxOptionsError } from '../../../src/errors.ts'
import { recordingPublisher } from '../../../src/testing/testing.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'

const event = (type: string, aggregateId = type) => outboxEvent({ type, aggregateId })
const kinds = (results: readonly { ok: boolean; kind?: string }[]) =>
  results.map(({ ok, kind }) => (ok ? 'ok' : kind))
const typesOf = (events: readonly { type: string }[]) => events.map(({ type }) => type)

it('records what it delivers, in order, with parsed payloads', async () => {
  const publisher = recordingPublisher()
  const one = outboxEvent({ payload: '{"total":42}', headers: { tenant: 'a' } })
  expect(await publisher.publish([one])).toEqual([
    { ok: true, topic: 'orders', key: one.aggregateId, partition: null, offset: null },
  ])
  const { id, type, aggregateType, aggregateId, topic } = one
  const recorded = { id, type, aggregateType, aggregateId, topic }
  expect(publisher.published).toEqual([
    { ...recorded, payload: { total: 42 }, headers: { tenant: 'a' } },
  ])
  publisher.clear()
  expect(publisher.published).toEqual([])
  expect(publisher.attempted).toEqual([])
})

it('fails once, so many times, or for the events that it is told', async () => {
  const publisher = recordingPublisher()
  publisher.fail()
  publisher.fail({ as: 'permanent', when: ({ type }) => type === 'Poison', times: 2 })
  const events = ['A', 'B', 'Poison', 'C', 'Poison', 'Poison'].map((type, n) => event(type, `${n}`))
  const expected = ['rejected', 'ok', 'permanent', 'ok', 'permanent', 'ok']
  expect(kinds(await publisher.publish(events))).toEqual(expected)
  expect(typesOf(publisher.published)).toEqual(['B', 'C', 'Poison'])
  expect(publisher.attempted).toHaveLength(6)
})

it('fails with the error that it is given, and blames what it is told', async () => {
  const publisher = recordingPublisher()
  const error = new Error('no leader')
  publisher.fail({ as: 'transient', error, onlyTopic: true })
  const failure = { ok: false, kind: 'transient', error, blames: 'topic' }
  expect(await publisher.publish([event('A')])).toEqual([failure])
})

it.each([
  ['rejected', false, ['rejected', 'held', 'ok']],
  ['permanent', false, ['permanent', 'ok', 'ok']],
  ['permanent', true, ['permanent', 'held', 'ok']],
] as const)(
  'holds what is behind a %s event, with deadLettersHold %s',
  async (as, hold, expected) => {
    const publisher = recordingPublisher()
    publisher.fail({ as })
    const events = [event('A', 'one'), event('B', 'one'), event('C', 'two')]
    expect(kinds(await publisher.publish(events, { deadLettersHold: hold }))).toEqual(expected)
  },
)

it('is away until it recovers', async () => {
  const publisher = recordingPublisher()
  publisher.goAway()
  expect(kinds(await publisher.publish([event('A')]))).toEqual(['transient'])
  publisher.fail({ times: Number.POSITIVE_INFINITY })
  publisher.recover()
  expect(kinds(await publisher.publish([event('A')]))).toEqual(['ok'])
})

it('hangs until it recovers, and delivers then', async () => {
  const publisher = recordingPublisher()
  publisher.hang()
  publisher.hang()
  let isSettled = false
  const sent = publisher.publish([event('A')]).then((results) => {
    isSettled = true
    return results
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(isSettled).toBe(false)
  expect(publisher.published).toEqual([])
  publisher.recover()
  expect(kinds(await sent)).toEqual(['ok'])
})

it.each([{ as: 'held' }, { times: 0 }, { times: 1.5 }, { when: 'A' }, { tiems: 1 }])(
  'refuses %o',
  (failure) => {
    const publisher = recordingPublisher()
    expect(() => publisher.fail(failure as never)).toThrow(OutboxOptionsError)
  },
)
