// Dead letters wait for a person, who can find them, give them another life in their old place, or do
// without them.
import { expect, it } from 'vitest'
import type { Publisher } from '../../../src/index.ts'
import type { HandledEvent } from '../../../src/publishers/handlers.ts'
import { connect } from '../../support/servers/database.ts'
import { useFixture } from '../../support/fixture.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, failedAs, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

/** An outbox whose handlers refuse what is broken, at the first attempt for good. */
function fallible() {
  const state = { broken: true, handled: [] as unknown[] }
  const handle = ({ payload, headers }: HandledEvent) => {
    if (state.broken && !headers['fine']) throw new Error(`refused ${String(payload)}`)
    state.handled.push(payload)
  }
  const handlers = { OrderCompleted: handle, OrderPaid: handle, DeadLettered: handle }
  return { state, handlers }
}

const fine = { headers: { fine: 'yes' } }

async function bury(events: Parameters<typeof newEvent>[0][], options = {}) {
  const { state, handlers } = fallible()
  const outbox = fixture.handling(handlers, { maxAttempts: 1, ...options })
  await outbox.withOutbox(async (_, emit) => emit(events.map((event) => newEvent(event))))
  await waitUntil(async () => (await outbox.pollOnce()) === 0, { message: 'nothing is left' })
  return { outbox, state }
}

it('lists dead letters with what they died of, by id, type, aggregate and time', async () => {
  const { outbox } = await bury([
    { payload: 1 },
    { payload: 2, type: 'OrderPaid', aggregateId: 'two' },
    { payload: 3, aggregateType: 'cart', aggregateId: 'three' },
    { payload: 4, ...fine },
  ])
  const { deadLetters } = outbox
  const all = await deadLetters.list()
  expect(all).toMatchObject([
    { payload: '1', error: expect.stringContaining('refused 1'), attempts: 1 },
    { payload: '2', type: 'OrderPaid' },
    { payload: '3', aggregateType: 'cart', topic: 'cart' },
  ])
  const payloads = async (listing: Parameters<typeof deadLetters.list>[0]) =>
    (await deadLetters.list(listing)).map(({ payload }) => Number(payload))
  expect(await payloads({ id: all[0]!.id })).toEqual([1])
  expect(await payloads({ id: [all[0]!.id, all[2]!.id] })).toEqual([1, 3])
  expect(await payloads({ type: 'OrderPaid' })).toEqual([2])
  expect(await payloads({ aggregateType: 'cart' })).toEqual([3])
  expect(await payloads({ aggregateId: 'two' })).toEqual([2])
  expect(await payloads({ aggregateId: 'two', type: 'OrderCompleted' })).toEqual([])
  expect(await payloads({ limit: 2 })).toEqual([1, 2])
  expect(await payloads({ limit: 2, afterSeq: all[1]!.seq })).toEqual([3])
  const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second))
  for (const [n, { id }] of all.entries()) {
    await fixture.sql`update outbox set last_attempt_at = ${at(n)} where id = ${id}`
  }
  expect((await deadLetters.list()).map(({ diedAt }) => diedAt)).toEqual([at(0), at(1), at(2)])
  expect(await payloads({ diedSince: at(1) })).toEqual([2, 3])
  expect(await payloads({ diedBefore: at(1) })).toEqual([1])
  expect(await payloads({ diedSince: at(1), diedBefore: at(2) })).toEqual([2])
})

it('gives a retried one all its attempts back, and its id and its place in the order', async () => {
  const { outbox, state } = await bury([{ payload: 1, aggregateId: 'one' }])
  const id = (await outbox.deadLetters.list())[0]!.id
  await outbox.withOutbox(async (_, emit) => {
    emit([newEvent({ payload: 2, aggregateId: 'one' }), newEvent({ payload: 'other' })])
  })
  state.broken = false
  expect(await outbox.deadLetters.retry({ id })).toBe(1)
  expect((await fixture.rows())[0]).toMatchObject({ id, status: 'pending', attempts: 0 })
  await waitUntil(async () => (await outbox.pollOnce()) === 0, { message: 'nothing is left' })
  expect(state.handled.filter((payload) => payload !== 'other')).toEqual([1, 2])
  expect(await outbox.deadLetters.list()).toEqual([])
})

it('keeps a later event back on the immediate path while a retried one waits before it', async () => {
  const { outbox, state } = await bury([{ payload: 1, aggregateId: 'one' }])
  await outbox.start()
  await outbox.deadLetters.retry({ all: true })
  state.broken = false
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ payload: 2, aggregateId: 'one' })))
  await outbox.stop()
  expect(state.handled).toEqual([])
  await waitUntil(async () => (await outbox.pollOnce()) === 0, { message: 'nothing is left' })
  expect(state.handled).toEqual([1, 2])
})

it.each([
  ['a retried one', 'retry', [1, 2]],
  ['what a discarded one held', 'discard', [2]],
] as const)('sends %s at once, without waiting for the next poll', async (_, act, sent) => {
  // On one connection the poll of start() is over before anything is retried or discarded.
  const connection = connect(fixture.url, { max: 1 })
  const { outbox, state } = await bury(
    [1, 2].map((payload) => ({ payload, aggregateId: 'one' })),
    { db: connection.db, onDeadLetter: 'hold', poller: true, pollInterval: '1h' },
  )
  await outbox.start()
  state.broken = false
  await outbox.deadLetters[act]({ type: 'OrderCompleted' })
  await waitUntil(() => state.handled.length === sent.length, { message: 'they were sent' })
  expect(state.handled).toEqual(sent)
  await outbox.stop()
  await connection.close()
})

it('retries and discards any number of them', async () => {
  await fixture.sql`
    insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers, status,
      max_attempts, available_at, occurred_at)
    select gen_random_uuid(), n, 'order', n, 'OrderCompleted', 'order', '1', '{}', 'dead_letter', 10,
      now(), now() from generate_series(1, 2500) n`
  const outbox = fixture.handling({})
  expect(await outbox.deadLetters.retry({ aggregateType: 'order' })).toBe(2_500)
  await fixture.sql`update outbox set status = 'dead_letter'`
  expect(await outbox.deadLetters.discard({ all: true })).toBe(2_500)
  expect(await fixture.rows()).toEqual([])
})

it('discards what is asked for and nothing else', async () => {
  const { outbox } = await bury([
    { payload: 1 },
    { payload: 2, type: 'OrderPaid' },
    { payload: 3, type: 'OrderPaid' },
    { payload: 4, ...fine },
  ])
  expect(await outbox.deadLetters.discard({ type: 'OrderPaid' })).toBe(2)
  expect(await outbox.deadLetters.discard({ type: 'OrderPaid' })).toBe(0)
  expect((await fixture.rows()).map(({ event_type, status }) => [event_type, status])).toEqual([
    ['OrderCompleted', 'dead_letter'],
    ['OrderCompleted', 'published'],
  ])
})

it.each([
  ['nothing', undefined, /takes an object/],
  ['an empty filter', {}, /\{ all: true \} for all dead letters/],
  ['a filter whose value is undefined', { id: undefined }, /\{ all: true \} for all dead letters/],
  ['all and a filter', { all: true, type: 'OrderPaid' }, /contradict each other; remove one/],
  ['all that is not true', { all: false }, /all must be true, got false/],
  ['an unknown field', { typ: 'OrderPaid' }, /did you mean 'type'/],
  ['an id that is none', { id: 'x' }, /id must be the id of an event, a UUID, got 'x'/],
  ['a type that is no string', { type: 7 }, /type must be a string, got 7/],
  ['a time that is none', { diedSince: '2026' }, /diedSince must be a valid Date/],
])('touches nothing when it is given %s', async (_, selection, message) => {
  const { outbox } = await bury([{ payload: 1 }])
  for (const act of ['retry', 'discard'] as const) {
    const refused = outbox.deadLetters[act](selection as never)
    await expect(refused).rejects.toMatchObject({ code: 'OPTIONS_INVALID' })
    await expect(refused).rejects.toThrow(message)
  }
  expect(await fixture.rows()).toMatchObject([{ status: 'dead_letter' }])
})

it('lets later events go on without a dead letter, or keeps them back (continue, hold)', async () => {
  const events = [1, 2, 3].map((payload) => ({ payload, aggregateId: 'one', ...fine }))
  const poison = { payload: 0, aggregateId: 'one' }
  const going = await bury([poison, ...events], { onDeadLetter: 'continue' })
  expect(going.state.handled).toEqual([1, 2, 3])
  await fixture.sql`truncate outbox`

  const held = await bury([events[0]!, poison, ...events.slice(1), fine], { onDeadLetter: 'hold' })
  expect(held.state.handled).toEqual([1, expect.any(Object)])
  expect((await fixture.rows()).map((row) => row.status)).toEqual([
    'published',
    'dead_letter',
    'pending',
    'pending',
    'published',
  ])
  await held.outbox.start()
  await held.outbox.withOutbox(async (_, emit) => emit(newEvent({ ...events[0]!, payload: 4 })))
  await held.outbox.stop()
  expect(await held.outbox.pollOnce()).toBe(0)
  await held.outbox.deadLetters.discard({ all: true })
  await waitUntil(async () => (await held.outbox.pollOnce()) === 0, { message: 'nothing is left' })
  expect(held.state.handled.filter((payload) => typeof payload === 'number')).toEqual([1, 2, 3, 4])
})

it('is not held up by events that wait behind a dead letter', async () => {
  const held = ['one', 'two', 'three'].flatMap((aggregateId) => [
    { aggregateId, payload: 'poison' },
    { aggregateId, payload: 'held', ...fine },
  ])
  const { outbox, state } = await bury(held, { onDeadLetter: 'hold', batchSize: 2 })
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ payload: 'free', ...fine })))
  expect(await outbox.pollOnce()).toBe(1)
  expect(state.handled).toEqual(['free'])
})

it('holds what lies behind the last of several dead letters, and nothing before it', async () => {
  const { outbox } = await bury([1, 2].map((payload) => ({ payload, aggregateId: 'one' })))
  const handled: unknown[] = []
  const holding = fixture.handling(
    { OrderCompleted: ({ payload }) => void handled.push(payload) },
    { onDeadLetter: 'hold' },
  )
  const [first] = await holding.deadLetters.list()
  await holding.deadLetters.retry({ id: first!.id })
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ payload: 3, aggregateId: 'one' })))
  await waitUntil(async () => (await holding.pollOnce()) === 0, { message: 'nothing is left' })
  expect(handled).toEqual([1])
  await holding.deadLetters.retry({ all: true })
  await waitUntil(async () => (await holding.pollOnce()) === 0, { message: 'nothing is left' })
  expect(handled).toEqual([1, 2, 3])
})

it('holds what follows a dead letter on the immediate path too', async () => {
  const publisher = scriptedPublisher((event) =>
    event.payload === '"poison"' ? failedAs('permanent') : acked(event),
  )
  const outbox = fixture.outbox({ publisher, onDeadLetter: 'hold' })
  await outbox.start()
  const dead = nextEvent(outbox.events, 'event:dead')
  const event = (payload: unknown) => newEvent({ aggregateId: 'one', payload })
  await outbox.withOutbox(async (_, emit) => emit(event('poison')))
  // Whether its lane still remembers it or the table tells: it may not be overtaken.
  await outbox.withOutbox(async (_, emit) => emit(event(1)))
  await dead
  await outbox.withOutbox(async (_, emit) => emit(event(2)))
  await outbox.stop()
  expect(publisher.batches.flat()).toEqual(['poison'])
  expect((await fixture.rows()).map((row) => row.status)).toEqual([
    'dead_letter',
    'pending',
    'pending',
  ])
})

it('holds on the immediate path what is emitted when the dead letter is all there is', async () => {
  const publisher = scriptedPublisher(() => failedAs('permanent'))
  const outbox = fixture.outbox({ publisher, onDeadLetter: 'hold' })
  await outbox.start()
  const dead = nextEvent(outbox.events, 'event:dead')
  const event = (payload: unknown) => newEvent({ aggregateId: 'one', payload })
  await outbox.withOutbox(async (_, emit) => emit(event('poison')))
  await dead
  await outbox.withOutbox(async (_, emit) => emit(event(1)))
  await outbox.stop()
  expect(publisher.batches).toEqual([['poison']])
})

it.each([
  ['hold', true],
  ['continue', false],
] as const)(
  'tells the publisher what to do behind an event that dies in its hands (%s)',
  async (onDeadLetter, deadLettersHold) => {
    const rules: unknown[] = []
    const publisher: Publisher = {
      name: 'listening',
      publish: async (events, given) => {
        rules.push(given)
        return events.map(acked)
      },
    }
    const outbox = fixture.outbox({ publisher, onDeadLetter })
    await outbox.withOutbox(async (_, emit) => emit(newEvent()))
    await outbox.pollOnce()
    expect(rules).toMatchObject([{ deadLettersHold }])
  },
)

it('warns of dead letters while there are any, with their number by type and no payload', async () => {
  const logger = recordingLogger()
  const events = [{}, { type: 'OrderPaid' }, fine].map((event) => ({ payload: 'secret', ...event }))
  const { outbox } = await bury(events, { logger })
  await outbox.start()
  const line = await waitUntil(
    () => logger.lines.find(({ message }) => message.startsWith('there are dead letters')),
    { message: 'the log warns' },
  )
  expect(line).toMatchObject({
    level: 'warn',
    fields: { count: 2, byType: { OrderCompleted: 1, OrderPaid: 1 } },
  })
  await outbox.deadLetters.retry({ type: 'OrderPaid' })
  expect(logger.lines.at(-1)).toMatchObject({ level: 'info', fields: { count: 1 } })
  await outbox.stop()
  expect(JSON.stringify(logger.lines)).not.toContain('secret')
})

it('says nothing of dead letters when there are none', async () => {
  const logger = recordingLogger()
  const { outbox } = await bury([{ payload: 1, ...fine }], { logger })
  await outbox.start()
  await outbox.stop()
  expect(logger.lines.filter(({ level }) => level === 'warn')).toEqual([])
})

it('does not check for dead letters when told not to', async () => {
  const logger = recordingLogger()
  const { outbox } = await bury([{ payload: 1 }], { logger, deadLetterCheck: false })
  await outbox.start()
  await outbox.stop()
  expect(logger.lines.filter(({ message }) => /there are dead letters/.test(message))).toEqual([])
})

it('sends a copy of each dead letter to deadLetterTopic, once, saying what died of what', async () => {
  const publisher = scriptedPublisher((event) =>
    event.topic === 'fine' ? acked(event) : failedAs('permanent'),
  )
  const copies: unknown[] = []
  const handling = fixture.handling(
    {
      OrderCompleted: () => {
        throw new Error('no')
      },
      DeadLettered: (event) => void copies.push(event),
    },
    { maxAttempts: 1, deadLetterTopic: 'graveyard', onDeadLetter: 'hold', poller: true },
  )
  await handling.start()
  const published = nextEvent(handling.events, 'event:published')
  const ids: string[] = []
  await handling.withOutbox(async (_, emit) => {
    ids.push(emit(newEvent({ aggregateId: 'one', payload: { n: 1 }, headers: { tenant: 'a' } })))
  })
  // The copy is another aggregate's, or the dead letter would hold it.
  await published
  expect(copies).toMatchObject([
    {
      type: 'DeadLettered',
      topic: 'graveyard',
      aggregateType: 'aftercommit.dead_letter',
      aggregateId: 'one',
      payload: { n: 1 },
      headers: {
        tenant: 'a',
        'dead-letter-id': ids[0],
        'dead-letter-type': 'OrderCompleted',
        'dead-letter-aggregate-type': 'order',
        'dead-letter-topic': 'order',
        'dead-letter-error': expect.stringContaining('no'),
      },
    },
  ])
  await handling.stop()
  await fixture.sql`truncate outbox`

  // A copy that dies as well is not copied again, and keeps no other copy back.
  const refusing = fixture.outbox({
    publisher,
    deadLetterTopic: 'graveyard',
    onDeadLetter: 'hold',
  })
  const same = { aggregateId: 'one' }
  await refusing.withOutbox(async (_, emit) => {
    emit([
      newEvent(same),
      newEvent({ topic: 'fine' }),
      newEvent({ ...same, aggregateType: 'cart' }),
    ])
  })
  await waitUntil(async () => (await refusing.pollOnce()) === 0, { message: 'nothing is left' })
  expect((await fixture.rows()).map(({ event_type, status }) => [event_type, status])).toEqual([
    ['OrderCompleted', 'dead_letter'],
    ['OrderCompleted', 'published'],
    ['OrderCompleted', 'dead_letter'],
    ['DeadLettered', 'dead_letter'],
    ['DeadLettered', 'dead_letter'],
  ])
})

it('sends the copy at once, without waiting for the next poll', async () => {
  const outbox = fixture.handling(
    { OrderCompleted: () => Promise.reject(new Error('no')), DeadLettered: () => {} },
    { maxAttempts: 1, deadLetterTopic: 'graveyard', poller: true, pollInterval: '1h' },
  )
  await outbox.start()
  const published = nextEvent(outbox.events, 'event:published')
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  expect(await published).toMatchObject({ path: 'fallback', topic: 'graveyard' })
})
