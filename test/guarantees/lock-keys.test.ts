// lockKeys: units of work that emit for the same aggregate commit one after another, so that even without a
// lock of their own the order of saving is the order of committing.
import { sql as raw } from 'drizzle-orm'
import { expect, it } from 'vitest'
import { defer } from '../support/deferred.ts'
import { useFixture } from '../support/fixture.ts'
import { closeGate } from '../support/gate.ts'
import { newEvent } from '../support/sample-events.ts'
import { nextEvent, waitUntil } from '../support/wait-until.ts'

const fixture = useFixture()

it.each(['read committed', 'repeatable read', 'serializable'] as const)(
  'commits and sends in one order what two instances save at once (%s)',
  async (isolationLevel) => {
    const gate = await closeGate(fixture.sql)
    const log: unknown[] = []
    const options = { lockKeys: true, poller: true, pollInterval: '1h' } as const
    const handlers = {
      OrderCompleted: ({ payload }: { payload: unknown }) => void log.push(payload),
    }
    const [a, b] = [fixture.handling(handlers, options), fixture.handling(handlers, options)]
    await Promise.all([a.start(), b.start()])
    const event = (payload: number, aggregateId = 'one') => newEvent({ aggregateId, payload })
    const snapshotTaken = defer()
    const goOn = defer()
    const second = b.withOutbox(
      async (tx, emit) => {
        // Above read committed the transaction sees no more than what was there by now.
        await tx.execute(raw`select 1`)
        snapshotTaken.resolve()
        await goOn.promise
        emit(event(2))
      },
      { isolationLevel },
    )
    await snapshotTaken.promise
    const first = a.withOutbox(
      async (tx, emit) => {
        await tx.execute(raw`insert into gate values (1)`)
        emit(event(1))
      },
      { isolationLevel },
    )
    await gate.waiting(1)
    goOn.resolve()
    await gate.waiting(2)
    // Another aggregate is not held up.
    const other = nextEvent(b.events, 'event:published')
    await b.withOutbox(async (_, emit) => emit(event(0, 'other')))
    await other
    expect(log).toEqual([0])

    await gate.open()
    await Promise.all([first, second])
    await waitUntil(() => log.length === 3, { message: 'both were sent' })
    expect(log).toEqual([0, 1, 2])
    expect((await fixture.rows()).map(({ aggregate_id }) => aggregate_id)).toEqual([
      'one',
      'other',
      'one',
    ])
  },
)

it('does not deadlock however units of work mix the same aggregates', async () => {
  const outbox = fixture.handling({}, { lockKeys: true })
  const keys = Array.from({ length: 8 }, (_, n) => `key ${n}`)
  const units = Array.from({ length: 60 }, (_, n) =>
    outbox.withOutbox(async (__, emit) => {
      const rotated = [...keys.slice(n % 8), ...keys.slice(0, n % 8)]
      const mixed = n % 2 ? rotated.toReversed() : rotated
      emit(mixed.map((aggregateId) => newEvent({ aggregateId })))
    }),
  )
  await Promise.all(units)
  expect(await fixture.rows()).toHaveLength(480)
})
