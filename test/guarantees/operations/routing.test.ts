// Several publishers behind one outbox: each event goes to its own, one that hangs holds up nobody else, and what
// has no route is refused or told of. The publishers are scripted: no broker hangs for as long as a test wants.
import { expect, it } from 'vitest'
import { type OutboxEvent, type PublishResult, routerPublisher } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { drain, type RecordingPublisher, recordingPublisher } from '../../../src/testing/testing.ts'
import { blockedHandler } from '../../support/timing/blocked-handler.ts'
import { defer } from '../../support/timing/deferred.ts'
import { useFixture } from '../../support/fixture.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, failedAs, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
const POLLING = { poller: true, pollInterval: '1h' } as const

const event = (topic: string, payload: unknown = topic) => newEvent({ topic, payload })

/** One that is called `stuck` and answers when it is let, and one that is called `fine`. */
function stuckAndFine() {
  const release = defer()
  const stuck = scriptedPublisher(
    async (one) => {
      await release.promise
      return acked(one)
    },
    { timeoutMs: 60_000 },
  )
  const fine = scriptedPublisher(acked)
  const publisher = routerPublisher({
    publishers: { stuck, fine },
    routes: { stuck: 'stuck', fine: 'fine' },
  })
  return { publisher, stuck, fine, release: () => release.resolve() }
}

const status = async () => (await fixture.rows()).map((row) => row.status)

it('sends each event to the publisher of its topic, on both paths', async () => {
  const publishers = { a: recordingPublisher(), b: recordingPublisher() }
  const topicsOf = ({ published }: RecordingPublisher) => published.map(({ topic }) => topic)
  const publisher = routerPublisher({ publishers, routes: { one: 'a', two: 'b' }, otherwise: 'a' })
  const emitAll = () =>
    outbox.withOutbox(async (_, emit) => emit(['one', 'two', 'three'].map((topic) => event(topic))))
  const outbox = fixture.outbox({ publisher })
  // Not started yet: these are for the fallback.
  await emitAll()
  expect(await outbox.pollOnce()).toBe(3)
  expect([topicsOf(publishers.a), topicsOf(publishers.b)]).toEqual([['one', 'three'], ['two']])
  await outbox.start()
  await emitAll()
  await drain(outbox)
  expect(topicsOf(publishers.a)).toEqual(['one', 'three', 'one', 'three'])
  expect(topicsOf(publishers.b)).toEqual(['two', 'two'])
})

it('rolls the unit of work back when an event has no route, caught or not', async () => {
  const { publisher, fine } = stuckAndFine()
  const outbox = fixture.outbox({ publisher })
  await outbox.start()
  const NO_ROUTE = { name: 'EventRefusedError', code: 'NO_ROUTE' }
  const work = outbox.withOutbox(async (_, emit) => {
    emit(event('fine'))
    expect(() => emit(event('nowhere'))).toThrow(expect.objectContaining(NO_ROUTE))
  })
  await expect(work).rejects.toMatchObject(NO_ROUTE)
  await outbox.stop()
  expect(await fixture.rows()).toEqual([])
  expect(fine.batches).toEqual([])
})

it('gives each publisher its own room in memory, and its own batches', async () => {
  const { publisher, stuck, fine, release } = stuckAndFine()
  // No fallback: what is sent here was sent at once.
  const outbox = fixture.outbox({ publisher, maxInFlight: 2 })
  await outbox.start()
  for (let n = 0; n < 12; n += 1) {
    await outbox.withOutbox(async (_, emit) => emit(event('stuck', n)))
  }
  await waitUntil(() => stuck.batches.flat().length === 2, { message: 'one is full' })
  for (let n = 0; n < 5; n += 1) {
    const published = nextEvent(outbox.events, 'event:published')
    // In one unit of work with an event that the other publisher cannot take.
    await outbox.withOutbox(async (_, emit) => emit([event('fine', n), event('stuck', 12 + n)]))
    expect(await published).toMatchObject({ path: 'immediate', topic: 'fine' })
  }
  expect(fine.batches).toEqual([[0], [1], [2], [3], [4]])
  release()
})

it('gives each publisher its own rounds of the fallback', async () => {
  const { publisher, stuck, fine, release } = stuckAndFine()
  const outbox = fixture.outbox({ publisher, immediate: false, ...POLLING })
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit(event('stuck')))
  await waitUntil(() => stuck.batches.length === 1, { message: 'a round hangs' })
  for (let n = 0; n < 3; n += 1) {
    const published = nextEvent(outbox.events, 'event:published')
    await outbox.withOutbox(async (_, emit) => emit(event('fine', n)))
    expect(await published).toMatchObject({ path: 'fallback', topic: 'fine' })
  }
  expect(fine.batches).toEqual([[0], [1], [2]])
  release()
})

it('keeps an event without a handler, and a slow one, from the events of a broker', async () => {
  const slow = blockedHandler()
  const broker = scriptedPublisher(acked)
  const publisher = routerPublisher({
    publishers: { broker, handlers: handlersPublisher({ handlers: { Slow: slow.handler } }) },
    routes: { mail: 'handlers' },
    otherwise: 'broker',
  })
  const outbox = fixture.outbox({ publisher })
  await outbox.start()
  const failed = nextEvent(outbox.events, 'event:failed')
  const published = nextEvent(outbox.events, 'event:published')
  await outbox.withOutbox(async (_, emit) => {
    emit([
      newEvent({ topic: 'mail', type: 'Slow' }),
      newEvent({ topic: 'mail', type: 'Unheard' }),
      newEvent({ topic: 'orders' }),
    ])
  })
  expect((await failed).error).toMatchObject({ code: 'NO_HANDLER' })
  expect(await published).toMatchObject({ topic: 'orders', path: 'immediate' })
  await slow.started
  slow.release()
})

it('tells in circuits, health and log which publisher is away, and asks the others no less', async () => {
  let away = true
  const answer = (one: OutboxEvent): PublishResult => (away ? failedAs('transient') : acked(one))
  const publishers = { near: scriptedPublisher(acked), far: scriptedPublisher(answer) }
  const publisher = routerPublisher({ publishers, routes: { a: 'near', b: 'far' } })
  const logger = recordingLogger()
  const outbox = fixture.outbox({ publisher, logger, ...POLLING })
  await outbox.start()
  expect(logger.lines).toContainEqual(
    expect.objectContaining({
      fields: expect.objectContaining({
        publishers: [{ publisher: 'near' }, { publisher: 'far' }],
      }) as object,
      message: 'outbox started',
    }),
  )
  const opened = nextEvent(outbox.events, 'circuit:open')
  const closed = nextEvent(outbox.events, 'circuit:closed')
  await outbox.withOutbox(async (_, emit) => emit([event('a'), event('b')]))
  expect(await opened).toMatchObject({ publisher: 'far', topic: null })
  expect((await outbox.health()).flags).toEqual([
    {
      flag: 'circuit',
      message: expect.stringMatching(
        /^sends to the broker of the publisher 'far' have failed for /,
      ),
    },
  ])
  away = false
  expect(await closed).toEqual({ publisher: 'far', topic: null })
  const told = logger.lines.filter(({ message }) => message.includes('circuit'))
  expect(told.map(({ fields }) => (fields as { publisher?: string }).publisher)).toEqual([
    'far',
    'far',
  ])
})

it('sends the copy of a dead letter to the publisher of its own topic, at once', async () => {
  const publishers = {
    a: scriptedPublisher(() => failedAs('permanent')),
    b: scriptedPublisher(acked),
  }
  const publisher = routerPublisher({ publishers, routes: { one: 'a', dead: 'b' } })
  const outbox = fixture.outbox({ publisher, deadLetterTopic: 'dead', ...POLLING })
  await outbox.start()
  const published = nextEvent(outbox.events, 'event:published')
  await outbox.withOutbox(async (_, emit) => emit(event('one')))
  expect(await published).toMatchObject({ topic: 'dead', event: { type: 'DeadLettered' } })
  expect(publishers.b.batches).toEqual([['one']])
})

it('starts and stops all publishers, and waits for the one that hangs no longer than it says', async () => {
  const { stuck, fine, release } = stuckAndFine()
  const calls: string[] = []
  const watched = (name: string, publisher: typeof stuck) => ({
    ...publisher,
    connect: async () => void calls.push(`${name} connects`),
    disconnect: async () => void calls.push(`${name} disconnects`),
  })
  const publisher = routerPublisher({
    publishers: { stuck: watched('stuck', stuck), fine: watched('fine', fine) },
    routes: { stuck: 'stuck', fine: 'fine' },
  })
  const logger = recordingLogger()
  const outbox = fixture.outbox({ publisher, logger, stopTimeout: '300ms' })
  await outbox.start()
  const published = nextEvent(outbox.events, 'event:published')
  await outbox.withOutbox(async (_, emit) => emit([event('stuck'), event('fine')]))
  await published
  await outbox.stop()
  expect(calls).toEqual([
    'stuck connects',
    'fine connects',
    'stuck disconnects',
    'fine disconnects',
  ])
  expect(await status()).toEqual(['pending', 'published'])
  expect(logger.lines.filter(({ level }) => level === 'warn')).toMatchObject([
    { fields: { publishers: ['stuck'] }, message: expect.stringMatching(/stopTimeout passed/) },
  ])
  release()
})

it('loses nothing when a route is removed: warns, shows it in health, and goes on when it is back', async () => {
  const sent: string[] = []
  const publishers = () => {
    const answer = (one: OutboxEvent) => {
      sent.push(one.topic)
      return acked(one)
    }
    return { a: scriptedPublisher(answer), b: scriptedPublisher(answer) }
  }
  const before = fixture.outbox({
    publisher: routerPublisher({ publishers: publishers(), routes: { one: 'a', old: 'b' } }),
  })
  await before.withOutbox(async (_, emit) => {
    emit([event('one'), event('old'), event('old')])
    emit([
      newEvent({ topic: 'old', aggregateId: 'x' }),
      newEvent({ topic: 'one', aggregateId: 'x' }),
    ])
  })

  const logger = recordingLogger()
  const after = fixture.outbox({
    publisher: routerPublisher({ publishers: publishers(), routes: { one: 'a', two: 'b' } }),
    logger,
    ...POLLING,
  })
  await after.start()
  const warned = await waitUntil(
    () => logger.lines.find(({ message }) => message.includes('no route')),
    { message: 'the log warns' },
  )
  expect(warned).toMatchObject({ level: 'warn', fields: { byTopic: { old: 3 } } })
  expect(warned.message).toMatch(
    /add the topics to the routes of routerPublisher\(\), or set its option otherwise/,
  )
  // What follows one of them in its aggregate and has a route goes out: it is another destination's.
  await waitUntil(() => sent.length === 2, { message: 'the others went out' })
  expect((await after.health()).flags).toEqual([
    {
      flag: 'unrouted',
      message:
        "3 events wait for the topic 'old', which has no route; add one, or set the option 'otherwise' of routerPublisher()",
    },
  ])
  await after.stop()
  expect((await status()).filter((one) => one === 'pending')).toHaveLength(3)

  const again = fixture.outbox({
    publisher: routerPublisher({
      publishers: publishers(),
      routes: { one: 'a' },
      otherwise: 'b',
    }),
  })
  while (await again.pollOnce());
  expect(sent).toEqual(['one', 'one', 'old', 'old', 'old'])
  expect((await again.health()).flags).toEqual([])
})

it('counts no event as without a route that somebody still holds', async () => {
  const publishers = { a: scriptedPublisher(acked) }
  const outbox = fixture.outbox({
    publisher: routerPublisher({ publishers, routes: { one: 'a' } }),
  })
  const other = fixture.outbox({ publisher: scriptedPublisher(acked) })
  await other.withOutbox(async (_, emit) => emit(event('elsewhere')))
  await fixture.sql`update outbox set available_at = clock_timestamp() + interval '1 hour'`
  expect((await outbox.health()).flags).toEqual([])
})
