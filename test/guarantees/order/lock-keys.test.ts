// lockKeys: units of work that emit for the same aggregate commit one after another, so that even without a
// lock of their own the order of saving is the order of committing.
import { expect, it } from 'vitest'
import type { NewEvent } from '../../../src/index.ts'
import { defer } from '../../support/timing/deferred.ts'
import { SERVED_DRIVERS } from '../../support/drivers.ts'
import { describeEach } from '../../support/fixture.ts'
import { closeGate } from '../../support/timing/gate.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

describeEach(SERVED_DRIVERS, (fixture) => {
  const { query } = fixture.driver

  it.each(['read committed', 'repeatable read', 'serializable'] as const)(
    'commits and sends in one order what two instances save at once (%s)',
    async (isolationLevel) => {
      const gate = await closeGate(fixture.sql)
      const log: unknown[] = []
      const options = { lockKeys: true, poller: true, pollInterval: '1h' } as const
      const secondHadItsChance = defer()
      const handlers = {
        OrderCompleted: async ({ payload }: { payload: unknown }) => {
          if (payload === 1) await secondHadItsChance.promise
          log.push(payload)
        },
      }
      const [a, b] = [fixture.handling(handlers, options), fixture.handling(handlers, options)]
      await Promise.all([a.start(), b.start()])
      const event = (payload: number) => newEvent({ aggregateId: 'one', payload })
      const snapshotTaken = defer()
      const goOn = defer()
      const second = b.withOutbox(
        async (tx, emit) => {
          // Above read committed the transaction sees no more than what was there by now.
          await query(tx, 'select 1')
          snapshotTaken.resolve()
          await goOn.promise
          emit(event(2))
        },
        { isolationLevel },
      )
      await snapshotTaken.promise
      const first = a.withOutbox(
        async (tx, emit) => {
          await query(tx, 'insert into gate values (1)')
          emit(event(1))
        },
        { isolationLevel },
      )
      await gate.waiting(1)
      goOn.resolve()
      await gate.waiting(2)
      // Other aggregates are not held up, be it of another type or of another id.
      const sendAtOnce = async (other: Partial<NewEvent>) => {
        const published = nextEvent(b.events, 'event:published')
        await b.withOutbox(async (_, emit) => emit({ ...event(0), ...other }))
        expect(await published).toMatchObject({ path: 'immediate' })
      }
      await sendAtOnce({ aggregateType: 'cart' })
      await sendAtOnce({ aggregateId: 'other' })
      expect(log).toEqual([0, 0])

      await gate.open()
      await Promise.all([first, second])
      // Had the second been sent at once, it would have gone before this one.
      await sendAtOnce({ aggregateId: 'another' })
      secondHadItsChance.resolve()
      await waitUntil(() => log.length === 5, { message: 'both were sent' })
      expect(log).toEqual([0, 0, 0, 1, 2])
    },
  )

  it.each([
    ['few', 8, 8],
    // Postgres would go through many in another order than through a few of them.
    ['few and many', 8, 400],
  ])(
    'does not deadlock however units of work mix the same aggregates (%s)',
    async (_, few, many) => {
      const outbox = fixture.handling({}, { lockKeys: true })
      const keys = Array.from({ length: many }, (__, n) => `key ${n}`)
      const units = Array.from({ length: 60 }, (__, n) =>
        outbox.withOutbox(async (___, emit) => {
          const from = (n * few) % many
          const rotated = [...keys.slice(from), ...keys.slice(0, from)]
          const mixed = n % 2 ? rotated.toReversed() : rotated.slice(0, few)
          emit(mixed.map((aggregateId) => newEvent({ aggregateId })))
        }),
      )
      await Promise.all(units)
      expect(await fixture.rows()).toHaveLength(30 * few + 30 * many)
    },
  )
})
