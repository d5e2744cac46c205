// Rules 8, 9 and 10: the database's clock is the only one, memory is bounded, and signals cost nothing
// but latency.
import { afterEach, expect, it, vi } from 'vitest'
import type { LifecycleEvents } from '../../../src/index.ts'
import { defer } from '../../support/timing/deferred.ts'
import { useFixture } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
afterEach(() => {
  vi.useRealTimers()
})

it('stores no time but the database clock, however wrong the clock of the application (one clock)', async () => {
  // A fake stands in for the wrong clock: the machine's own cannot be moved for a test.
  vi.useFakeTimers({ toFake: ['Date'], now: new Date('2001-01-01') })
  const outbox = fixture.handling(
    {
      OrderCompleted: ({ attempts }) => {
        if (attempts === 0) throw new Error('once')
      },
    },
    { threshold: '30s' },
  )
  await outbox.start()
  const failed = nextEvent(outbox.events, 'event:failed')
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await failed
  await fixture.sql`update outbox set available_at = clock_timestamp()`
  expect(await outbox.pollOnce()).toBe(1)
  const [row] = await fixture.sql`
    select status, greatest(abs(extract(epoch from occurred_at - clock_timestamp())),
      abs(extract(epoch from created_at - clock_timestamp())),
      abs(extract(epoch from updated_at - clock_timestamp())),
      abs(extract(epoch from published_at - clock_timestamp())),
      abs(extract(epoch from last_attempt_at - clock_timestamp())),
      abs(extract(epoch from available_at - clock_timestamp()))) < 60 as all_near
    from outbox`
  expect(row).toEqual({ status: 'published', all_near: true })
})

it('leaves events past maxInFlight in the table, free for the fallback at once (memory is bounded)', async () => {
  const release = defer()
  let handling = 0
  const outbox = fixture.handling(
    {
      OrderCompleted: async () => {
        handling += 1
        await release.promise
      },
    },
    { maxInFlight: 3 },
  )
  await outbox.start()
  for (let n = 0; n < 10; n += 1) await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await waitUntil(() => handling > 0, { message: 'a send is under way' })
  const rows = await fixture.rows()
  expect(rows.map((row) => row.available)).toEqual([
    ...Array<boolean>(3).fill(false),
    ...Array<boolean>(7).fill(true),
  ])

  const other = fixture.handling(
    { OrderCompleted: () => {} },
    { batchSize: 2, poller: true, pollInterval: '1h' },
  )
  // With an hour between polls, only a poller that goes on while there is work gets them all.
  await other.start()
  await waitUntil(async () => (await fixture.rows()).filter(isPublished).length === 7, {
    message: 'the fallback drained what the first one left',
  })
  release.resolve()
  await waitUntil(async () => (await fixture.rows()).every(isPublished), {
    message: 'the first one finished what it held',
  })
  expect(handling).toBe(3)
})

it('has room again for the immediate path once an outcome is recorded', async () => {
  const outbox = fixture.handling(
    {
      Good: () => {},
      Bad: () => {
        throw new Error('never')
      },
    },
    { maxInFlight: 1, threshold: '1m', maxAttempts: 1 },
  )
  await outbox.start()
  for (const [type, told] of [
    ['Good', 'event:published'],
    ['Bad', 'event:dead'],
    ['Good', 'event:published'],
  ] as const) {
    const recorded = nextEvent(outbox.events, told)
    await outbox.withOutbox(async (_, emit) => emit(newEvent({ type })))
    expect(await recorded).toMatchObject({ event: { type } })
  }
})

it('has room again once what waits behind a failed event is let go', async () => {
  const [started, release] = [defer(), defer()]
  const outbox = fixture.handling(
    {
      Good: () => {},
      Bad: async () => {
        started.resolve()
        await release.promise
        throw new Error('not yet')
      },
    },
    { maxInFlight: 2, threshold: '1m' },
  )
  await outbox.start()
  const bad = newEvent({ type: 'Bad' })
  await outbox.withOutbox(async (_, emit) => emit(bad))
  await started.promise
  await outbox.withOutbox(async (_, emit) => emit(bad))
  const failed = nextEvent(outbox.events, 'event:failed')
  release.resolve()
  await failed
  await waitUntil(async () => (await fixture.rows())[1]?.leased === false, {
    message: 'the one that waited was given back',
  })
  // The row may show it before the outbox has heard of it.
  await waitUntil(() => outbox.activity()[0]!.inFlight === 0, { message: 'the outbox knows so' })
  await outbox.withOutbox(async (_, emit) => {
    emit([newEvent({ type: 'Good' }), newEvent({ type: 'Good' })])
  })
  await outbox.stop()
  expect((await fixture.rows()).map((row) => row.status)).toEqual([
    'failed',
    'pending',
    'published',
    'published',
  ])
})

const isPublished = ({ status }: { status: string }) => status === 'published'

it('delivers and records although every listener and the logger throw (signals never cost delivery)', async () => {
  const broken = () => {
    throw new Error('listener')
  }
  const rejecting = async () => {
    throw new Error('async listener')
  }
  const handlers = {
    Good: () => {},
    Bad: () => {
      throw new Error('handler')
    },
  }
  const outbox = fixture.handling(handlers, {
    maxAttemptsByType: { Bad: 1 },
    logger: { debug: broken, info: broken, warn: broken, error: broken },
  })
  const names: (keyof LifecycleEvents)[] = ['event:saved', 'event:published', 'event:dead', 'error']
  for (const name of names) outbox.events.on(name, broken).on(name, rejecting)
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => {
    emit([newEvent({ type: 'Good' }), newEvent({ type: 'Bad' })])
  })
  await waitUntil(async () => (await fixture.rows()).every((row) => row.status !== 'pending'), {
    message: 'both outcomes were recorded',
  })
  expect((await fixture.rows()).map((row) => row.status)).toEqual(['published', 'dead_letter'])
})
