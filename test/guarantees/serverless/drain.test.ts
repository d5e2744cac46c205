// drain(): a scheduled function sends what is due, whichever process committed it, until nothing more can be sent now or its time
// is over, and says what it delivered.
import { setTimeout as delay } from 'node:timers/promises'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { expect, it } from 'vitest'
import { postgresJs } from '../../../src/drivers/postgres-js.ts'
import { type Outbox, type Publisher, routerPublisher } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { recordingPublisher } from '../../../src/testing/testing.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, failedAs, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { ALL_DRIVERS } from '../../support/drivers.ts'
import { describeEach, useFixture } from '../../support/fixture.ts'
import { openClient } from '../../support/servers/database.ts'
import { blockedHandler } from '../../support/timing/blocked-handler.ts'
import { defer } from '../../support/timing/deferred.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

/** The test ends by what it sees, never by this. */
const LONG = { timeout: '2m' } as const
/** Long enough for a busy machine to begin a send, and over while the send hangs. */
const SHORT = { timeout: '6s' } as const
const NOTHING = { delivered: 0, failed: 0, dead: 0, timedOut: false }

describeEach(ALL_DRIVERS, (fixture) => {
  it('goes on until nothing is due, in order, and says how many were delivered', async () => {
    const writer = fixture.handling({})
    const events = Array.from({ length: 25 }, (_, payload) =>
      newEvent({ aggregateId: `order-${payload % 2}`, payload }),
    )
    await writer.withOutbox(async (_, emit) => emit(events))
    const publisher = scriptedPublisher(acked)
    const outbox = fixture.outbox({ publisher, batchSize: 4 })
    expect(await outbox.drain(LONG)).toEqual({ ...NOTHING, delivered: 25 })
    const sent = publisher.batches.flat() as number[]
    for (const rest of [0, 1]) {
      const lane = sent.filter((payload) => payload % 2 === rest)
      expect(lane).toEqual(lane.toSorted((a, b) => a - b))
    }
    expect(await outbox.drain(LONG)).toEqual(NOTHING)
  })
})

const fixture = useFixture()
const save = (...events: Parameters<typeof newEvent>[0][]) =>
  fixture.handling({}).withOutbox(async (_, emit) => emit(events.map((one) => newEvent(one))))

it('counts what was refused and what died apart from what was delivered', async () => {
  await save({ type: 'Fine' }, { type: 'Refused' }, { type: 'Poison' }, { type: 'Poison' })
  const publisher = scriptedPublisher((event) => {
    if (event.type === 'Refused') return failedAs('rejected')
    return event.type === 'Poison' ? failedAs('permanent') : acked(event)
  })
  const outbox = fixture.outbox({ publisher })
  expect(await outbox.drain(LONG)).toEqual({ ...NOTHING, delivered: 1, failed: 1, dead: 2 })
})

it('survives a send that fails once, and gives up on a broker that fails a probe', async () => {
  await save({ payload: 1 }, { payload: 2 })
  let failures = 1
  const publisher = scriptedPublisher((event) =>
    failures-- > 0 ? failedAs('transient') : acked(event),
  )
  const outbox = fixture.outbox({ publisher })
  expect(await outbox.drain(LONG)).toEqual({ ...NOTHING, delivered: 2 })
  await save({ payload: 3 })
  failures = Number.POSITIVE_INFINITY
  expect(await outbox.drain(LONG)).toEqual(NOTHING)
  expect(publisher.batches.at(-1)).toEqual([3])
})

it('sends what its handlers emit, also for a publisher that had nothing to send', async () => {
  const done = defer()
  const broker = recordingPublisher()
  const outbox: Outbox<PostgresJsDatabase> = fixture.outbox({
    publisher: routerPublisher({
      publishers: {
        broker,
        handlers: handlersPublisher({
          handlers: {
            async Begun() {
              await done.promise
              await emitted({ type: 'GoesOn', topic: 'here' })
            },
            GoesOn: () => emitted({ type: 'Ended', topic: 'there' }),
          },
        }),
      },
      routes: { here: 'handlers', there: 'broker' },
    }),
  })
  const emitted = async (event: Parameters<typeof newEvent>[0]) => {
    await outbox.withOutbox(async (_, emit) => emit(newEvent(event)))
  }
  outbox.events.on('poll:done', ({ publisher }) => publisher === 'broker' && done.resolve())
  await emitted({ type: 'Begun', topic: 'here' })
  expect(await outbox.drain(LONG)).toEqual({ ...NOTHING, delivered: 3 })
  expect(broker.published.map(({ type }) => type)).toEqual(['Ended'])
})

it('goes on with a topic whose sends take longer than a round waits for them', async () => {
  await save(...Array.from({ length: 12 }, (_, payload) => ({ payload })))
  const quick = recordingPublisher({ orderScope: 'topic' })
  const publish: Publisher['publish'] = async (...given) => {
    await delay(1_200)
    return await quick.publish(...given)
  }
  const outbox = fixture.outbox({ publisher: { ...quick, publish }, batchSize: 2 })
  expect(await outbox.drain(LONG)).toEqual({ ...NOTHING, delivered: 12 })
})

it('does not wait for a topic that is away and has nothing left', async () => {
  await save({ topic: 'away' })
  const publisher = scriptedPublisher(() => failedAs('transient', 'topic'))
  const outbox = fixture.outbox({ publisher })
  await outbox.pollOnce()
  await fixture.sql`delete from outbox`
  expect(await outbox.drain(LONG)).toEqual(NOTHING)
  expect(publisher.batches).toHaveLength(1)
})

it('sends nothing to a paused topic', async () => {
  await save({ topic: 'paused' }, { topic: 'open' })
  const outbox = fixture.outbox({ publisher: scriptedPublisher(acked) })
  await outbox.pause('paused')
  const drained = await outbox.drain(LONG)
  await outbox.resume('paused')
  expect(drained).toEqual({ ...NOTHING, delivered: 1 })
})

it('ends in time although a send hangs, and keeps its lease until that has settled', async () => {
  await save({})
  const { handler, started, release } = blockedHandler()
  const outbox = fixture.handling({ OrderCompleted: handler })
  const drained = outbox.drain(SHORT)
  await started
  expect(await drained).toEqual({ ...NOTHING, timedOut: true })
  expect(outbox.activity()).toMatchObject([{ inFlight: 1 }])
  expect(await fixture.outbox({ publisher: scriptedPublisher(acked) }).drain(LONG)).toEqual(NOTHING)
  release()
  await waitUntil(() => outbox.activity()[0]!.inFlight === 0, { message: 'it was recorded' })
  expect(await fixture.rows()).toMatchObject([{ status: 'published' }])
})

it('sends nothing with enabled: false', async () => {
  await save({})
  const outbox = fixture.outbox({ publisher: scriptedPublisher(acked), enabled: false })
  expect(await outbox.drain(LONG)).toEqual(NOTHING)
  expect(await fixture.rows()).toMatchObject([{ status: 'pending' }])
})

it('rejects when the database fails', async () => {
  const client = openClient(fixture.url)
  const db = postgresJs(client) as never
  const outbox = fixture.outbox({ publisher: scriptedPublisher(acked), db })
  await client.end()
  await expect(outbox.drain(LONG)).rejects.toMatchObject({ code: 'STORE_FAILED' })
})

it('ends with stop(), which waits for what it is sending', async () => {
  await save({ payload: 1 }, { payload: 2 })
  const order: string[] = []
  const { handler, started, release, handled } = blockedHandler()
  const outbox = fixture.handling({ OrderCompleted: handler }, { batchSize: 1 })
  outbox.events.on('event:published', () => order.push('published'))
  const draining = outbox.drain(LONG)
  await started
  const stopping = outbox.stop().then(() => order.push('stopped'))
  // As long as a stop() that waited for nothing would take, several times over.
  for (let n = 0; n < 20; n += 1) await fixture.rows()
  release()
  expect(await draining).toEqual({ ...NOTHING, delivered: 1, timedOut: true })
  await stopping
  expect(order).toEqual(['published', 'stopped'])
  expect(handled).toHaveLength(1)
  const rows = await fixture.rows()
  expect(rows.map(({ status, leased }) => [status, leased])).toEqual([
    ['published', false],
    ['pending', false],
  ])
})

it('keeps a publisher that outboxes share while it sends, although the others stop', async () => {
  await save({ payload: 1 })
  const [sending, release] = [defer(), defer()]
  const calls: string[] = []
  const publisher: Publisher = {
    ...recordingPublisher(),
    async publish(events, rules) {
      sending.resolve()
      await release.promise
      calls.push('published')
      return await recordingPublisher().publish(events, rules)
    },
    async disconnect() {
      calls.push('disconnected')
    },
  }
  const [draining, idle, started] = [0, 1, 2].map(() => fixture.outbox({ publisher }))
  await started!.start()
  const drained = draining!.drain(LONG)
  await sending.promise
  await Promise.all([idle!.stop(), started!.stop()])
  release.resolve()
  expect(await drained).toEqual({ ...NOTHING, delivered: 1 })
  expect(calls[0]).toBe('published')
})

it('ends with a stop() that comes before it has begun to send', async () => {
  await save(...Array.from({ length: 200 }, (_, payload) => ({ payload })))
  const outbox = fixture.outbox({ publisher: scriptedPublisher(acked), batchSize: 1 })
  const draining = outbox.drain(LONG)
  await outbox.stop()
  expect(await draining).toMatchObject({ timedOut: true })
  expect((await fixture.rows()).filter(({ leased }) => leased)).toEqual([])
})

it('closes a shared publisher that a stop() left open for it, once its last send is over', async () => {
  await save({ payload: 1 })
  const release = defer()
  const calls: string[] = []
  const publisher: Publisher = {
    ...recordingPublisher(),
    async publish(events, rules) {
      calls.push('sending')
      await release.promise
      calls.push('published')
      return await recordingPublisher().publish(events, rules)
    },
    async disconnect() {
      calls.push('disconnected')
    },
  }
  const [draining, started] = [fixture.outbox({ publisher }), fixture.outbox({ publisher })]
  await started.start()
  // Until it has found the event: the send outlasts the call.
  while (calls.length === 0) await draining.drain({ timeout: '1s' })
  await started.stop()
  expect(calls).toEqual(['sending'])
  release.resolve()
  await waitUntil(() => calls.length === 3, { message: 'the publisher is closed' })
  expect(calls).toEqual(['sending', 'published', 'disconnected'])
})
