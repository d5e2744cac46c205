// aftercommit/testing against real databases: drain() is deterministic, and a test may run inside a transaction that it rolls
// back.
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { type AnyDatabase, createOutbox, type Outbox } from '../../src/index.ts'
import {
  drain,
  insideTransaction,
  outboxMatchers,
  recordingPublisher,
  rolledBack,
} from '../../src/testing/testing.ts'
import { newEvent } from '../support/doubles/sample-events.ts'
import { ALL_DRIVERS } from '../support/drivers.ts'
import { describeEach } from '../support/fixture.ts'

expect.extend(outboxMatchers)

const place = (outbox: Pick<Outbox, 'withOutbox'>, type = 'OrderPlaced') =>
  outbox.withOutbox(async (_, emit) => emit(newEvent({ type, aggregateId: 'one' })))

describeEach(ALL_DRIVERS, (fixture) => {
  it('drains an outbox that was never started, and one that is started', async () => {
    const publisher = recordingPublisher()
    const outbox = fixture.outbox({ publisher })
    await place(outbox)
    expect(publisher).toHavePublishedNothing()
    await drain(outbox)
    expect(publisher).toHavePublishedTimes(1)
    await outbox.start()
    await place(outbox, 'OrderPaid')
    await drain(outbox)
    expect(publisher).toHavePublishedInOrder([{ type: 'OrderPlaced' }, { type: 'OrderPaid' }])
  })

  it('publishes inside a transaction that is rolled back, and leaves nothing of it', async () => {
    const publisher = recordingPublisher()
    const { query } = fixture.driver
    const count = await rolledBack(fixture.db, async (db, tx) => {
      const outbox = createOutbox({ db, publisher, logger: false })
      await place(outbox)
      const failing = outbox.withOutbox(async (inner, emit) => {
        await query(inner, 'create table gone (id int)')
        emit(newEvent({ type: 'Refused' }))
        throw new Error('the business said no')
      })
      await expect(failing).rejects.toThrow('the business said no')
      await place(outbox, 'OrderPaid')
      await drain(outbox)
      return (await query(tx, 'select id from outbox')).length
    })
    expect(count).toBe(2)
    expect(publisher).toHavePublishedTimes(2)
    expect(publisher).toHavePublishedInOrder([{ type: 'OrderPlaced' }, { type: 'OrderPaid' }])
    expect(await fixture.rows()).toEqual([])
  })

  it('keeps units of work apart that are begun at once inside the transaction, and one inside another', async () => {
    const publisher = recordingPublisher()
    const { query, nest } = fixture.driver
    await rolledBack(fixture.db, async (db) => {
      const outbox = createOutbox({ db, publisher, logger: false })
      const placed = async (type: string, fails: boolean) => {
        await outbox.withOutbox(async (tx, emit) => {
          emit(newEvent({ type }))
          await query(tx, 'select 1')
          // A transaction of its own, as on outbox.db outside of a test, although it is inside another one.
          await nest(outbox.db, async () => outbox.emit(newEvent({ type: `${type}Too` })))
          if (fails) throw new Error('the business said no')
        })
      }
      const types = ['A', 'B', 'C']
      const all = await Promise.allSettled(types.map((type) => placed(type, type === 'B')))
      expect(all.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      await drain(outbox)
    })
    const types = publisher.published.map(({ type }) => type)
    expect(types.toSorted()).toEqual(['A', 'AToo', 'C', 'CToo'])
  })

  it('rolls back a test that fails, and fails as it does', async () => {
    const failure = new Error('expected 1 to be 2')
    const test = rolledBack(fixture.db, async (db) => {
      await place(createOutbox({ db, publisher: recordingPublisher(), logger: false }))
      throw failure
    })
    await expect(test).rejects.toBe(failure)
    expect(await fixture.rows()).toEqual([])
  })
})

describeEach(
  ALL_DRIVERS.filter(({ beginOn }) => beginOn),
  (fixture) => {
    it('publishes inside a transaction that the test itself began, also through outbox.db', async () => {
      const publisher = recordingPublisher()
      const { begin, nest } = fixture.driver
      const failure = new Error('rolled back')
      const test = begin(fixture.db, async (tx) => {
        const db = insideTransaction(fixture.db, tx)
        const outbox = createOutbox({ db, publisher, logger: false })
        await place(outbox)
        await nest(outbox.db, async () => outbox.emit(newEvent({ type: 'OrderPaid' })))
        await drain(outbox)
        throw failure
      })
      await expect(test).rejects.toBe(failure)
      expect(publisher).toHavePublishedInOrder([{ type: 'OrderPlaced' }, { type: 'OrderPaid' }])
      expect(await fixture.rows()).toEqual([])
    })

    it.each([undefined, 'serializable'] as const)(
      'runs code that begins on outbox.db as an application does, with the level %s',
      async (isolation) => {
        const publisher = recordingPublisher()
        const { begin, beginOn, query } = fixture.driver
        const run = async (db: AnyDatabase) => {
          const outbox = createOutbox({ db, publisher, logger: false })
          const inTransaction = (type: string, fails = false) =>
            beginOn!(
              outbox.db,
              async (tx) => {
                outbox.emit(newEvent({ type }))
                if (fails) throw new Error('the business said no')
                return await query(tx, 'select 1 as one')
              },
              isolation,
            )
          expect(await inTransaction('OrderPlaced')).toEqual([{ one: 1 }])
          await expect(inTransaction('Refused', true)).rejects.toThrow('the business said no')
          await inTransaction('OrderPaid')
          await drain(outbox)
        }
        const published = () => {
          const types = publisher.published.map(({ type }) => type)
          publisher.clear()
          return types
        }
        await rolledBack(fixture.db, (db) => run(db))
        expect(published()).toEqual(['OrderPlaced', 'OrderPaid'])
        const failure = new Error('rolled back')
        const test = begin(fixture.db, async (tx) => {
          await run(insideTransaction(fixture.db, tx))
          throw failure
        })
        await expect(test).rejects.toBe(failure)
        expect(published()).toEqual(['OrderPlaced', 'OrderPaid'])
        expect(await fixture.rows()).toEqual([])
      },
    )
  },
)

describe('drain()', () => {
  describeEach(ALL_DRIVERS.slice(0, 1), (fixture) => {
    it('sends again what failed in transit, and leaves what was refused', async () => {
      const publisher = recordingPublisher()
      const outbox = fixture.outbox({ publisher })
      publisher.fail({ as: 'transient' })
      publisher.fail({ when: ({ type }) => type === 'Refused' })
      await outbox.withOutbox(async (_, emit) => emit([newEvent(), newEvent({ type: 'Refused' })]))
      await drain(outbox)
      expect(publisher).toHavePublishedTimes(1)
      expect(publisher).not.toHavePublished({ type: 'Refused' })
      await outbox.failures.retry({ all: true })
      await drain(outbox)
      expect(publisher).toHavePublished({ type: 'Refused' })
    })

    it('ends while the publisher is away, and delivers when it is back', async () => {
      const publisher = recordingPublisher()
      const outbox = fixture.outbox({ publisher })
      publisher.goAway()
      await place(outbox)
      await drain(outbox)
      expect(publisher).toHavePublishedNothing()
      publisher.recover()
      await drain(outbox)
      expect(publisher).toHavePublishedTimes(1)
    })

    it.each([false, true])('sends what handlers emit, with start(): %s', async (isStarted) => {
      const handled: string[] = []
      const outbox: Outbox = fixture.handling({
        async OrderPlaced({ type }) {
          await place(outbox, 'OrderPaid')
          handled.push(type)
        },
        async OrderPaid({ type }) {
          await delay(300)
          handled.push(type)
        },
      })
      if (isStarted) await outbox.start()
      await place(outbox)
      await drain(outbox)
      expect(handled).toEqual(['OrderPlaced', 'OrderPaid'])
    })

    it.each([
      [{ enabled: false }, 'enabled: true'],
      [{ relay: 'cdc', publisher: undefined }, "relay: 'outbox'"],
    ])('refuses an outbox that sends nothing: %o', async (options, remedy) => {
      const outbox = fixture.outbox({ publisher: recordingPublisher(), ...options } as never)
      await expect(drain(outbox)).rejects.toMatchObject({
        code: 'OPTIONS_INVALID',
        message: expect.stringContaining(`create it with ${remedy}`) as string,
      })
    })

    it('rejects while handlers emit without an end', async () => {
      const outbox: Outbox = fixture.handling({
        async OrderPlaced() {
          await place(outbox)
        },
      })
      await place(outbox)
      await expect(drain(outbox, { timeout: '1s' })).rejects.toMatchObject({
        code: 'PUBLISH_TIMEOUT',
        message: expect.stringMatching(/longer than 1s/) as string,
      })
    })

    it('rejects while a send hangs, instead of passing for nothing', async () => {
      const publisher = recordingPublisher()
      const outbox = fixture.outbox({ publisher })
      publisher.hang()
      const id = await place(outbox)
      await expect(drain(outbox, { timeout: '6s' })).rejects.toMatchObject({
        code: 'PUBLISH_TIMEOUT',
        message: expect.stringContaining(
          `longer than 6s; without an outcome: OrderPlaced ${id} (sending)`,
        ),
      })
      publisher.recover()
      await drain(outbox)
      expect(publisher).toHavePublishedTimes(1)
    })
  })
})
