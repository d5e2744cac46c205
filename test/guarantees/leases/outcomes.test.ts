// Rule 6, and what a failure costs: success always wins, failure is fenced, and attempts are counted.
import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { databaseOf } from '../../../src/drivers/database-of.ts'
import { prepareEvent } from '../../../src/event/prepare.ts'
import type { FailureRecord } from '../../../src/store/outbox/outbox-store.ts'
import { newClaimer } from '../../support/claimer.ts'
import { defer } from '../../support/timing/deferred.ts'
import { useFixture } from '../../support/fixture.ts'
import { lenientRules, newEvent } from '../../support/doubles/sample-events.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
const claimNow = newClaimer(() => fixture.store())

const lease = (ms: number) => ({ token: randomUUID(), workerId: 'test', ms })
const failure = (ref: { id: string; token: string }): FailureRecord => ({
  ...ref,
  status: 'failed',
  counts: true,
  delayMs: 0,
  error: 'late',
  copyId: null,
  copyLane: null,
})

async function saveOne(leaseMs = 0) {
  const born = lease(leaseMs)
  const [saved] = await fixture
    .store()
    .save(databaseOf(fixture.db), [prepareEvent(newEvent(), lenientRules)], born)
  return { id: saved!.event.id, token: born.token }
}

async function claimOne(leaseMs: number) {
  const claimed = lease(leaseMs)
  const [event] = await waitUntil(
    async () => {
      const events = await claimNow({ lease: claimed, limit: 1 })
      return events.length > 0 && events
    },
    { message: 'a row can be claimed' },
  )
  return { id: event!.id, token: claimed.token }
}

it('does not let a late failure overwrite published', async () => {
  const { id, token } = await saveOne()
  await fixture.store().recordPublished([id])
  expect(await fixture.store().recordFailed([failure({ id, token })])).toEqual(new Map())
  expect(await fixture.rows()).toMatchObject([{ status: 'published', attempts: 0 }])
})

it('does not let a holder whose lease was taken over record a failure', async () => {
  await saveOne()
  const first = await claimOne(1)
  const second = await claimOne(60_000)
  expect(second.id).toBe(first.id)
  expect(await fixture.store().recordFailed([failure(first)])).toEqual(new Map())
  expect(await fixture.rows()).toMatchObject([{ attempts: 0, last_error: null, available: false }])
  expect(await fixture.store().recordFailed([failure(second)])).toEqual(
    new Map([[second.id, second.token]]),
  )
  expect(await fixture.rows()).toMatchObject([{ attempts: 1, last_error: 'late' }])
})

it('counts a failure that is recorded twice once', async () => {
  const ref = await saveOne(60_000)
  await fixture.store().recordFailed([failure(ref)])
  await fixture.store().recordFailed([failure(ref)])
  expect(await fixture.rows()).toMatchObject([{ attempts: 1 }])
})

it('lets a late ack win over another holder, and over a dead letter', async () => {
  const held = await saveOne(60_000)
  const dead = await saveOne(60_000)
  await fixture.store().recordFailed([{ ...failure(dead), status: 'dead_letter' }])
  await fixture.store().recordPublished([held.id, dead.id])
  const statuses = (await fixture.rows()).map((row) => row.status)
  expect(statuses).toEqual(['published', 'published'])
})

it('does not renew a lease that somebody else holds by now', async () => {
  await saveOne()
  const first = await claimOne(1)
  const second = await claimOne(60_000)
  expect(await fixture.store().renew([first, second], 60_000)).toEqual(
    new Map([[second.id, second.token]]),
  )
  expect(await fixture.store().renew([first], 60_000)).toEqual(new Map())
})

it('keeps the time of the first ack when a second one comes', async () => {
  const { id } = await saveOne()
  await fixture.store().recordPublished([id])
  const [first] = await fixture.sql`select published_at::text, updated_at::text from outbox`
  await fixture.store().recordPublished([id])
  const [second] = await fixture.sql`select published_at::text, updated_at::text from outbox`
  expect(second).toEqual(first)
})

it('does not renew the lease of a row that is published', async () => {
  const ref = await saveOne()
  await fixture.store().recordPublished([ref.id])
  expect(await fixture.store().renew([ref], 60_000)).toEqual(new Map())
  expect(await fixture.rows()).toMatchObject([{ available: true }])
})

it('gives a row that was claimed but not tried back as it was', async () => {
  const lastTry = async () => {
    const [row] = await fixture.sql`select attempts, last_error, last_attempt_at::text from outbox`
    return row
  }
  await fixture.store().recordFailed([failure(await saveOne(60_000))])
  const before = await lastTry()
  expect(before).toMatchObject({ attempts: 1, last_error: 'late' })
  const untried = {
    ...failure(await claimOne(60_000)),
    status: null,
    counts: false,
    error: null,
  }
  expect(await fixture.store().recordFailed([untried])).toEqual(
    new Map([[untried.id, untried.token]]),
  )
  expect(await lastTry()).toEqual(before)
  expect(await fixture.rows()).toMatchObject([{ status: 'failed', available: true }])
})

it('forgets the last error of an event that went out after all', async () => {
  const ref = await saveOne(60_000)
  await fixture.store().recordFailed([failure(ref)])
  await fixture.store().recordPublished([ref.id])
  expect(await fixture.rows()).toMatchObject([{ status: 'published', last_error: null }])
})

it('shows on a row who saved it, then who claimed it', async () => {
  const born = { ...lease(0), workerId: 'saver' }
  await fixture.store().save(databaseOf(fixture.db), [prepareEvent(newEvent(), lenientRules)], born)
  expect(await fixture.rows()).toMatchObject([{ worker_id: 'saver' }])
  await claimOne(60_000)
  expect(await fixture.rows()).toMatchObject([{ worker_id: 'test' }])
})

it('claims no more than it is asked to, what has waited longest first', async () => {
  const refs = [await saveOne(), await saveOne(), await saveOne()]
  await fixture.sql`update outbox set available_at = available_at - interval '1 hour'
    where id = ${refs[1]!.id}`
  const claim = async (limit: number) => {
    return (await claimNow({ lease: lease(60_000), limit })).map(({ id }) => id)
  }
  expect(await claim(1)).toEqual([refs[1]!.id])
  expect(await claim(2)).toEqual([refs[0]!.id, refs[2]!.id])
})

it('claims nothing of the topics that it is told to leave alone', async () => {
  const topics = ['fine', 'away', 'a "quoted, \\\\ {name}']
  const events = topics.map((topic) => prepareEvent(newEvent({ topic }), lenientRules))
  await fixture.store().save(databaseOf(fixture.db), events, lease(0))
  const request = { lease: lease(60_000), exceptTopics: topics.slice(1) }
  expect((await claimNow(request)).map(({ topic }) => topic)).toEqual(['fine'])
})

it('does not tell of a failure that was fenced off', async () => {
  const [started, release] = [defer(), defer()]
  const outbox = fixture.handling(
    {
      OrderCompleted: async () => {
        started.resolve()
        await release.promise
        throw new Error('too late')
      },
    },
    { threshold: '1m' },
  )
  const told: unknown[] = []
  outbox.events.on('event:failed', (signal) => told.push(signal))
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await started.promise
  // Somebody else took the row over.
  await fixture.sql`update outbox set lease_token = ${randomUUID()}`
  release.resolve()
  await outbox.stop()
  expect(await fixture.rows()).toMatchObject([{ attempts: 0, last_error: null }])
  expect(told).toEqual([])
})

it('fences off what this very process did with a row under an earlier claim', async () => {
  const saver = fixture.handling({})
  await saver.withOutbox(async (_, emit) => emit(newEvent()))
  const started = [defer(), defer()]
  const release = [defer(), defer()]
  let calls = 0
  const outbox = fixture.handling(
    {
      OrderCompleted: async () => {
        const call = calls++
        started[call]?.resolve()
        await release[call]?.promise
        if (call === 0) throw new Error('too late')
      },
    },
    { threshold: '1m' },
  )
  const first = outbox.pollOnce()
  await started[0]!.promise
  // Its lease ends, as it does when the process was frozen for a while.
  await fixture.sql`update outbox set available_at = clock_timestamp()`
  const second = outbox.pollOnce()
  await started[1]!.promise
  release[0]!.resolve()
  await first
  expect(await fixture.rows()).toMatchObject([{ attempts: 0, last_error: null, available: false }])
  release[1]!.resolve()
  await second
  expect(await fixture.rows()).toMatchObject([{ status: 'published' }])
})

it('counts no attempt for an event that was held back behind a rejected one', async () => {
  const outbox = fixture.handling(
    {
      OrderCompleted: () => {
        throw new Error('not yet')
      },
    },
    { threshold: '1m' },
  )
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => {
    emit([newEvent({ aggregateId: 'one' }), newEvent({ aggregateId: 'one' })])
  })
  await outbox.stop()
  expect(await fixture.rows()).toMatchObject([
    { status: 'failed', attempts: 1, available: false },
    { status: 'pending', attempts: 0, available: true, last_error: null },
  ])
})

it('tells how long an event took from COMMIT to its ack on the immediate path', async () => {
  const outbox = fixture.handling({ OrderCompleted: () => {} }, { threshold: '1m' })
  await outbox.start()
  const before = performance.now()
  const published = nextEvent(outbox.events, 'event:published')
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  const { latencyMs } = await published
  expect(latencyMs).toBeGreaterThan(0)
  expect(latencyMs).toBeLessThan(performance.now() - before)
})

it('tries a rejected event again after a backoff, then makes it a dead letter', async () => {
  const outbox = fixture.handling(
    {
      OrderCompleted: () => {
        throw new Error('no such customer')
      },
    },
    { maxAttempts: 3, backoffBase: 0, backoffMax: 0 },
  )
  await outbox.start()
  const failed = nextEvent(outbox.events, 'event:failed')
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  expect(await failed).toMatchObject({ attempts: 1, path: 'immediate' })

  const dead = nextEvent(outbox.events, 'event:dead')
  expect(await outbox.pollOnce()).toBe(1)
  expect(await fixture.rows()).toMatchObject([{ status: 'failed', attempts: 2 }])
  expect(await outbox.pollOnce()).toBe(1)
  expect(await dead).toMatchObject({ attempts: 3, error: { code: 'HANDLER_FAILED' } })
  expect(await outbox.pollOnce()).toBe(0)
  expect(await fixture.rows()).toMatchObject([
    { status: 'dead_letter', attempts: 3, last_error: expect.stringMatching(/no such customer/) },
  ])
})

it('rests a rejected event for the backoff', async () => {
  const outbox = fixture.handling(
    {
      OrderCompleted: () => {
        throw new Error('not yet')
      },
    },
    { backoffBase: '1h', backoffMax: '1h' },
  )
  await outbox.start()
  const failed = nextEvent(outbox.events, 'event:failed')
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  expect((await failed).retryInMs).toBeGreaterThanOrEqual(3_600_000)
  expect(await outbox.pollOnce()).toBe(0)
  const [rest] = await fixture.sql`
    select available_at - clock_timestamp() > interval '59 minutes' as long from outbox`
  expect(rest?.['long']).toBe(true)
})

it('fails an event without a handler clearly instead of taking it for done', async () => {
  const outbox = fixture.handling({ Known: () => {} })
  await outbox.start()
  const failed = nextEvent(outbox.events, 'event:failed')
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ type: 'Unknown' })))
  expect((await failed).error).toMatchObject({
    code: 'NO_HANDLER',
    message:
      "no handler for 'Unknown'; add one to handlersPublisher(), which has handlers for Known",
  })
  expect(await fixture.rows()).toMatchObject([{ status: 'failed', attempts: 1 }])
})

it('takes the number of attempts per event type', async () => {
  const outbox = fixture.handling({}, { maxAttemptsByType: { Fragile: 1 } })
  await outbox.start()
  const dead = nextEvent(outbox.events, 'event:dead')
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ type: 'Fragile' })))
  expect(await dead).toMatchObject({ attempts: 1, event: { type: 'Fragile' } })
})
