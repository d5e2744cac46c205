// Rule 6, and what a failure costs: success always wins, failure is fenced, and attempts are counted.
import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { prepareEvent } from '../../src/events.ts'
import { postgresStore } from '../../src/store/postgres.ts'
import type { FailureRecord } from '../../src/store/store.ts'
import { useFixture } from '../support/fixture.ts'
import { lenientRules, newEvent } from '../support/sample-events.ts'
import { nextEvent, waitUntil } from '../support/wait-until.ts'

const fixture = useFixture()
const store = () => postgresStore(fixture.db, { schema: 'public', name: 'outbox' })
const lease = (ms: number) => ({ token: randomUUID(), workerId: 'test', ms })
const failure = (ref: { id: string; token: string }): FailureRecord => ({
  ...ref,
  status: 'pending',
  counts: true,
  delayMs: 0,
  error: 'late',
})

async function saveOne(leaseMs = 0) {
  const born = lease(leaseMs)
  const [saved] = await store().save(fixture.db, [prepareEvent(newEvent(), lenientRules)], born)
  return { id: saved!.id, token: born.token }
}

async function claimOne(leaseMs: number) {
  const claimed = lease(leaseMs)
  const [event] = await waitUntil(
    async () => {
      const events = await store().claim({
        lease: claimed,
        limit: 1,
        exceptTopics: [],
        inOrder: true,
      })
      return events.length > 0 && events
    },
    { message: 'a row can be claimed' },
  )
  return { id: event!.id, token: claimed.token }
}

it('does not let a late failure overwrite published', async () => {
  const { id, token } = await saveOne()
  await store().settlePublished([id])
  expect(await store().settleFailed([failure({ id, token })])).toEqual(new Set())
  expect(await fixture.rows()).toMatchObject([{ status: 'published', attempts: 0 }])
})

it('does not let a holder whose lease was taken over record a failure', async () => {
  await saveOne()
  const first = await claimOne(1)
  const second = await claimOne(60_000)
  expect(second.id).toBe(first.id)
  expect(await store().settleFailed([failure(first)])).toEqual(new Set())
  expect(await fixture.rows()).toMatchObject([{ attempts: 0, last_error: null, available: false }])
  expect(await store().settleFailed([failure(second)])).toEqual(new Set([second.id]))
  expect(await fixture.rows()).toMatchObject([{ attempts: 1, last_error: 'late' }])
})

it('counts a failure that is recorded twice once', async () => {
  const ref = await saveOne(60_000)
  await store().settleFailed([failure(ref)])
  await store().settleFailed([failure(ref)])
  expect(await fixture.rows()).toMatchObject([{ attempts: 1 }])
})

it('lets a late ack win over another holder, and over a dead letter', async () => {
  const held = await saveOne(60_000)
  const dead = await saveOne(60_000)
  await store().settleFailed([{ ...failure(dead), status: 'dead_letter' }])
  await store().settlePublished([held.id, dead.id])
  const statuses = (await fixture.rows()).map((row) => row.status)
  expect(statuses).toEqual(['published', 'published'])
})

it('does not renew a lease that somebody else holds by now', async () => {
  await saveOne()
  const first = await claimOne(1)
  const second = await claimOne(60_000)
  expect(await store().renew([first, second], 60_000)).toEqual(new Set([second.id]))
  expect(await store().renew([first], 60_000)).toEqual(new Set())
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
  expect(await fixture.rows()).toMatchObject([{ status: 'pending', attempts: 2 }])
  expect(await outbox.pollOnce()).toBe(1)
  expect(await dead).toMatchObject({ attempts: 3, error: { code: 'HANDLER_FAILED' } })
  expect(await outbox.pollOnce()).toBe(0)
  expect(await fixture.rows()).toMatchObject([
    { status: 'dead_letter', attempts: 3, last_error: /no such customer/ as never },
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
    message: "no handler for 'Unknown'; handlersPublisher() was given Known",
  })
  expect(await fixture.rows()).toMatchObject([{ status: 'pending', attempts: 1 }])
})

it('takes the number of attempts per event type', async () => {
  const outbox = fixture.handling({}, { maxAttemptsByType: { Fragile: 1 } })
  await outbox.start()
  const dead = nextEvent(outbox.events, 'event:dead')
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ type: 'Fragile' })))
  expect(await dead).toMatchObject({ attempts: 1, event: { type: 'Fragile' } })
})
