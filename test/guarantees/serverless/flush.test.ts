// flush(): everything that this process committed has an outcome when it resolves, or the result says what has not and why.
// With or without start(), as a function needs it that is frozen after its answer.
import { expect, it } from 'vitest'
import { OutboxOptionsError } from '../../../src/index.ts'
import { postgresJs } from '../../../src/drivers/postgres-js.ts'
import { recordingPublisher } from '../../../src/testing/testing.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, failedAs, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { ALL_DRIVERS } from '../../support/drivers.ts'
import { describeEach, useFixture, WATCHABLE } from '../../support/fixture.ts'
import { startProcess, runProcess } from '../../support/servers/child-process.ts'
import { openClient } from '../../support/servers/database.ts'
import { blockedHandler } from '../../support/timing/blocked-handler.ts'
import { defer } from '../../support/timing/deferred.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

/** The test ends by what it sees, never by this. */
const LONG = { timeout: '2m' } as const
/** Long enough for a busy machine to look, claim and begin a send, and over while that hangs. */
const SHORT = { timeout: '6s' } as const
const EMPTY = { ok: true, delivered: [], failed: [], left: [], untracked: 0 }
const statuses = (rows: readonly { status: string }[]) => rows.map(({ status }) => status)

describeEach(ALL_DRIVERS, (fixture) => {
  it('delivers without start() what was committed, in order, and lists it without payloads', async () => {
    const publisher = scriptedPublisher(acked)
    const outbox = fixture.outbox({ publisher })
    const ids: string[] = []
    for (const payload of [1, 2, 3]) {
      const event = newEvent({ aggregateId: 'one', payload })
      ids.push(await outbox.withOutbox(async (_, emit) => emit(event)))
    }
    const ref = {
      type: 'OrderCompleted',
      aggregateType: 'order',
      aggregateId: 'one',
      topic: 'order',
    }
    expect(await outbox.flush(LONG)).toEqual({
      ...EMPTY,
      delivered: ids.map((id) => ({ id, ...ref })),
    })
    expect(publisher.batches.flat()).toEqual([1, 2, 3])
    expect(statuses(await fixture.rows())).toEqual(['published', 'published', 'published'])
    expect(await outbox.flush(LONG)).toEqual(EMPTY)
  })

  it('delivers what emitIn() saved once it is committed, and never what was rolled back', async () => {
    const outbox = fixture.outbox({ publisher: scriptedPublisher(acked) })
    const { begin } = fixture.driver
    const committed = await begin(fixture.db, (tx) => outbox.emitIn(tx, newEvent()))
    const rolledBack = begin(fixture.db, async (tx) => {
      await outbox.emitIn(tx, newEvent())
      throw new Error('the business said no')
    })
    await expect(rolledBack).rejects.toThrow('the business said no')
    expect(await outbox.flush(LONG)).toMatchObject({ ...EMPTY, delivered: [{ id: committed }] })
    expect(statuses(await fixture.rows())).toEqual(['published'])
  })
})

const fixture = useFixture()

it.each([false, true])(
  'does not count as delivered what emitIn() saved in a savepoint that was rolled back, with start(): %s',
  async (isStarted) => {
    const publisher = scriptedPublisher(acked)
    const outbox = fixture.outbox({ publisher, poller: false })
    if (isStarted) await outbox.start()
    const id = await fixture.db.transaction(async (tx) => {
      const undone = tx.transaction(async (inner) => {
        await outbox.emitIn(inner, newEvent({ payload: 'undone' }))
        throw new Error('the business said no')
      })
      await expect(undone).rejects.toThrow('the business said no')
      return await outbox.emitIn(tx, newEvent({ payload: 'kept' }))
    })
    const { delivered, ...rest } = await outbox.flush(LONG)
    expect(rest).toMatchObject({ ok: true, failed: [], left: [], untracked: 0 })
    // A started outbox may have delivered it before the call.
    expect(delivered.filter((event) => event.id !== id)).toEqual([])
    expect(await outbox.flush(LONG)).toEqual(EMPTY)
    expect(publisher.batches).toEqual([['kept']])
  },
)

it('does not count as delivered what was discarded', async () => {
  const outbox = fixture.outbox({ publisher: scriptedPublisher(() => failedAs('rejected')) })
  const id = await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  expect(await outbox.flush(LONG)).toMatchObject({ failed: [{ event: { id } }] })
  expect(await outbox.failures.discard({ all: true })).toBe(1)
  expect(await outbox.flush(LONG)).toEqual(EMPTY)
})

it('keeps an open transaction of emitIn() for the flush() after its COMMIT', async () => {
  const outbox = fixture.outbox({ publisher: scriptedPublisher(acked) })
  const [saved, goOn] = [defer<string>(), defer()]
  const commit = fixture.db.transaction(async (tx) => {
    saved.resolve(await outbox.emitIn(tx, newEvent()))
    await goOn.promise
  })
  const id = await saved.promise
  expect(await outbox.flush(LONG)).toEqual(EMPTY)
  goOn.resolve()
  await commit
  expect(await outbox.flush(LONG)).toMatchObject({ ...EMPTY, delivered: [{ id }] })
})

it('sends what is ahead in the same aggregate, and no other backlog', async () => {
  const other = fixture.handling({})
  const emit = (outbox: typeof other, aggregateId: string, payload: number) =>
    outbox.withOutbox(async (_, save) => save(newEvent({ aggregateId, payload })))
  await emit(other, 'shared', 1)
  await emit(other, 'foreign', 2)
  const publisher = scriptedPublisher(acked)
  const outbox = fixture.outbox({ publisher })
  const id = await emit(outbox, 'shared', 3)
  expect(await outbox.flush(LONG)).toMatchObject({ ...EMPTY, delivered: [{ id }] })
  expect(publisher.batches.flat()).toEqual([1, 3])
  expect(statuses(await fixture.rows())).toEqual(['published', 'pending', 'published'])
})

it('waits for what a started outbox is sending, and says so when the time is over', async () => {
  const { handler, started, release } = blockedHandler()
  const outbox = fixture.handling({ OrderCompleted: handler })
  await outbox.start()
  const id = await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await started
  const left = [{ event: expect.objectContaining({ id }), reason: 'sending' }]
  expect(await outbox.flush({ timeout: 0 })).toEqual({ ...EMPTY, ok: false, left })
  const flushed = outbox.flush(LONG)
  release()
  expect(await flushed).toMatchObject({ ...EMPTY, delivered: [{ id }] })
})

it('claims what the immediate path of a started outbox gave back', async () => {
  const holder = fixture.handling({})
  await holder.withOutbox(async (_, emit) => emit(newEvent({ aggregateId: 'one', payload: 1 })))
  const publisher = scriptedPublisher(acked)
  const outbox = fixture.outbox({ publisher })
  await outbox.start()
  // It has to follow an event that never came through here.
  const event = newEvent({ aggregateId: 'one', payload: 2 })
  const id = await outbox.withOutbox(async (_, emit) => emit(event))
  expect(await outbox.flush(LONG)).toMatchObject({ ...EMPTY, delivered: [{ id }] })
  expect(publisher.batches.flat()).toEqual([1, 2])
})

it('resolves while the broker is away: the events are left, without an attempt, for the next flush()', async () => {
  let away = true
  const publisher = scriptedPublisher((event) => (away ? failedAs('transient') : acked(event)))
  const outbox = fixture.outbox({ publisher })
  const id = await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  const left = [{ event: expect.objectContaining({ id }), reason: 'unreachable' }]
  expect(await outbox.flush(LONG)).toEqual({ ...EMPTY, ok: false, left })
  // The event, and one probe.
  expect(publisher.batches).toHaveLength(2)
  expect(await fixture.rows()).toMatchObject([{ status: 'pending', attempts: 0, leased: false }])
  away = false
  expect(await outbox.flush(LONG)).toMatchObject({ ...EMPTY, delivered: [{ id }] })
})

it('survives a send that fails on a stale connection', async () => {
  let sends = 0
  const publisher = scriptedPublisher((event) =>
    (sends += 1) === 1 ? failedAs('transient') : acked(event),
  )
  const outbox = fixture.outbox({ publisher })
  const emitted = await outbox.withOutbox(async (_, emit) => emit([newEvent(), newEvent()]))
  const { ok, delivered } = await outbox.flush(LONG)
  expect(ok).toBe(true)
  expect(delivered.map(({ id }) => id)).toEqual(emitted)
})

it('sends nothing to a paused topic, and does not wait for it', async () => {
  const publisher = scriptedPublisher(acked)
  const outbox = fixture.outbox({ publisher })
  await outbox.pause('paused')
  const [id] = await outbox.withOutbox(async (_, emit) =>
    emit([newEvent({ topic: 'paused', payload: 1 }), newEvent({ topic: 'open', payload: 2 })]),
  )
  const result = await outbox.flush(LONG)
  await outbox.resume('paused')
  expect(result).toMatchObject({ ok: false, delivered: [{ topic: 'open' }] })
  expect(result.left).toEqual([{ event: expect.objectContaining({ id }), reason: 'paused' }])
  expect(publisher.batches).toEqual([[2]])
})

it('says what failed, what died, and what waits behind a failed one', async () => {
  const publisher = recordingPublisher()
  publisher.fail({ when: ({ type }) => type === 'Refused' })
  publisher.fail({ as: 'permanent', when: ({ type }) => type === 'Poison' })
  const outbox = fixture.outbox({ publisher })
  const events = ['Refused', 'Behind', 'Poison'].map((type) =>
    newEvent({ type, aggregateId: type === 'Poison' ? 'poison' : 'one' }),
  )
  await outbox.withOutbox(async (_, emit) => emit(events))
  const failure = { attempts: 1, error: expect.stringContaining('because the test called fail()') }
  const expected = {
    ...EMPTY,
    ok: false,
    failed: [
      { event: { type: 'Refused' }, ...failure, isDead: false },
      { event: { type: 'Poison' }, ...failure, isDead: true },
    ],
    left: [{ event: { type: 'Behind' }, reason: 'behind' }],
  }
  expect(await outbox.flush(LONG)).toMatchObject(expected)
  // What rests stays known until it has an end; a dead letter has one.
  const again = { ...expected, failed: [expected.failed[0]] }
  expect(await outbox.flush(LONG)).toMatchObject(again)
})

it.each([['7d'], [0]] as const)(
  'counts what another instance has delivered, with retention %s',
  async (retention) => {
    const outbox = fixture.outbox({ publisher: scriptedPublisher(acked), retention })
    const id = await outbox.withOutbox(async (_, emit) => emit(newEvent()))
    const other = fixture.outbox({ publisher: scriptedPublisher(acked), retention })
    expect(await other.pollOnce()).toBe(1)
    expect(await outbox.flush(LONG)).toMatchObject({ ...EMPTY, delivered: [{ id }] })
  },
)

it('waits for what another instance is sending', async () => {
  const { handler, started, release } = blockedHandler()
  const outbox = fixture.outbox({ publisher: scriptedPublisher(acked) })
  const id = await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  const other = fixture.handling({ OrderCompleted: handler })
  const polled = other.pollOnce()
  await started
  const left = [{ event: expect.objectContaining({ id }), reason: 'sending' }]
  expect(await outbox.flush(SHORT)).toEqual({ ...EMPTY, ok: false, left })
  const flushed = outbox.flush(LONG)
  release()
  await polled
  expect(await flushed).toMatchObject({ ...EMPTY, delivered: [{ id }] })
})

it('keeps track of maxInFlight events, and counts the others', async () => {
  const outbox = fixture.outbox({ publisher: scriptedPublisher(acked), maxInFlight: 2 })
  const emitThree = () => [newEvent(), newEvent(), newEvent()]
  await outbox.withOutbox(async (_, emit) => emit(emitThree()))
  const result = await outbox.flush(LONG)
  expect(result).toMatchObject({ ok: false, untracked: 1 })
  expect(result.delivered).toHaveLength(2)
  await fixture.db.transaction((tx) => outbox.emitIn(tx, emitThree()))
  expect(await outbox.flush(LONG)).toEqual({ ...EMPTY, ok: false, untracked: 3 })
  expect(await outbox.flush(LONG)).toEqual(EMPTY)
})

it('resolves while the database is away, and reports it', async () => {
  const client = openClient(fixture.url, { max: 1 })
  const outbox = fixture.outbox({
    publisher: scriptedPublisher(acked),
    db: postgresJs(client) as never,
  })
  const id = await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await client.begin((tx) => outbox.emitIn(tx, newEvent()))
  const reported = nextEvent(outbox.events, 'error')
  await client.end()
  const left = [{ event: expect.objectContaining({ id }), reason: 'database' }]
  expect(await outbox.flush(LONG)).toEqual({ ...EMPTY, ok: false, left, untracked: 1 })
  expect(await reported).toMatchObject({ step: 'flush' })
})

it('sends nothing with enabled: false', async () => {
  const publisher = scriptedPublisher(acked)
  const outbox = fixture.outbox({ publisher, enabled: false })
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  expect(await outbox.flush(LONG)).toMatchObject({ ok: false, left: [{ reason: 'disabled' }] })
  expect(publisher.batches).toEqual([])
})

it('begins no send once its time is over', async () => {
  const publisher = scriptedPublisher(acked)
  const outbox = fixture.outbox({ publisher })
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  expect(await outbox.flush({ timeout: 0 })).toMatchObject({
    ok: false,
    left: [{ reason: 'timeout' }],
  })
  expect(publisher.batches).toEqual([])
})

it('gives a claim back that took longer than the time', async () => {
  const publisher = scriptedPublisher(acked)
  const outbox = fixture.outbox({ publisher })
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  const [locked, unlock] = [defer(), defer()]
  const lock = fixture.sql.begin(async (tx) => {
    await tx`lock table outbox in exclusive mode`
    locked.resolve()
    await unlock.promise
  })
  await locked.promise
  expect(await outbox.flush(SHORT)).toMatchObject({ left: [{ reason: 'timeout' }] })
  const recorded = nextEvent(outbox.events, 'step:done', ({ step }) => step === 'record')
  unlock.resolve()
  await lock
  await recorded
  expect(publisher.batches).toEqual([])
  expect(await fixture.rows()).toMatchObject([{ status: 'pending', leased: false }])
})

it('records an ack that comes after the time is over', async () => {
  const { handler, started, release } = blockedHandler()
  const outbox = fixture.handling({ OrderCompleted: handler })
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  const flushed = outbox.flush(SHORT)
  await started
  expect(await flushed).toMatchObject({ left: [{ reason: 'sending' }] })
  release()
  const isPublished = async () => (await fixture.rows())[0]?.status === 'published'
  await waitUntil(isPublished, { message: 'the ack was recorded' })
})

it.each([{ timeout: 'soon' }, { timeout: -1 }, { timeuot: '5s' }, null])(
  'refuses %o',
  async (options) => {
    const outbox = fixture.outbox({ publisher: scriptedPublisher(acked) })
    await expect(outbox.flush(options as never)).rejects.toThrow(OutboxOptionsError)
    await expect(outbox.drain(options as never)).rejects.toThrow(OutboxOptionsError)
  },
)

it('keeps no process alive: neither flush() nor drain() needs stop()', async () => {
  const { code, output } = await runProcess('answers-and-ends', [fixture.url])
  expect(output).toBe('flushed 1, drained 0\n')
  expect(code).toBe(0)
})

it('lets another instance take over from a process that was frozen in the middle of a send', async () => {
  const frozen = startProcess('answers-and-ends', [fixture.url, 'hang'])
  const answer = defer<string>()
  frozen.onLines(([line]) => answer.resolve(line!))
  try {
    expect(await answer.promise).toBe('left sending')
    frozen.freeze()
    const other = fixture.outbox({ publisher: scriptedPublisher(acked), ...WATCHABLE })
    await waitUntil(() => other.pollOnce(), { message: 'the lease ends' })
  } finally {
    frozen.kill()
    await frozen.ended
  }
  expect(statuses(await fixture.rows())).toEqual(['published'])
})
