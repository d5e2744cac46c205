// Rule 1: the row exists exactly if the business transaction committed; and nothing is published that
// was not saved.
import { inspect } from 'node:util'
import { expect, it } from 'vitest'
import type { Emit } from '../../../src/index.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import { defer } from '../../support/timing/deferred.ts'
import { ALL_DRIVERS } from '../../support/drivers.ts'
import {
  describeEach,
  describeWithKafka,
  kafkaBrokers,
  quietKafka,
  useFixture,
} from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { createTopic, readTopic } from '../../support/servers/topic-reader.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { nextEvent } from '../../support/timing/wait-until.ts'

const unexpected = { OrderCompleted: () => expect.unreachable('nothing was committed') }

describeWithKafka('on Kafka', () => {
  const fixture = useFixture()

  it('publishes nothing when the transaction rolls back', async () => {
    const topic = uniqueName('rollback')
    await createTopic(kafkaBrokers(), topic)
    const publisher = kafkaPublisher({ kafka: quietKafka(kafkaBrokers()) })
    const outbox = fixture.outbox({ publisher, topic })
    await outbox.start()
    const failure = new Error('the business said no')

    const rolledBack = outbox.withOutbox(async (_, emit) => {
      emit(newEvent({ payload: 'rolled back' }))
      throw failure
    })
    await expect(rolledBack).rejects.toBe(failure)
    const published = nextEvent(outbox.events, 'event:published')
    await outbox.withOutbox(async (_, emit) => emit(newEvent({ payload: 'committed' })))
    await published

    const reader = await readTopic(kafkaBrokers(), topic)
    const messages = await reader.readToEnd()
    await reader.stop()
    expect(messages.map(({ value }) => value)).toEqual(['"committed"'])
    expect(await fixture.rows()).toHaveLength(1)
  })
})

describeEach(ALL_DRIVERS, (fixture) => {
  const { query } = fixture.driver

  it('saves the events and the business rows together, in one INSERT and in the order of emit', async () => {
    const outbox = fixture.handling({})
    await fixture.sql`create table orders (id int primary key)`
    const ids = await outbox.withOutbox(async (tx, emit) => {
      await query(tx, 'insert into orders values (1)')
      return [
        emit(newEvent({ type: 'First' })),
        ...emit([newEvent({ type: 'Second' }), newEvent({ type: 'Third' })]),
      ]
    })
    const rows = await fixture.rows()
    expect(rows.map((row) => row.event_type)).toEqual(['First', 'Second', 'Third'])
    expect(rows.map((row) => row.id)).toEqual(ids)
    const [xmins] =
      await fixture.sql`select count(distinct xmin::text || cmin::text)::int from outbox`
    expect(xmins?.['count']).toBe(1)
    expect(await fixture.sql`select id from orders`).toHaveLength(1)
  })

  it('rolls back when an event is refused, even if the refusal was caught', async () => {
    const outbox = fixture.handling(unexpected)
    await outbox.start()
    const work = outbox.withOutbox(async (_, emit) => {
      emit(newEvent())
      try {
        emit(newEvent({ payload: 1n }))
      } catch {
        // A broad catch somewhere in the application.
      }
    })
    await expect(work).rejects.toMatchObject({ code: 'PAYLOAD_NOT_JSON' })
    expect(await fixture.rows()).toEqual([])
  })

  it('says that a statement had failed whose error was caught, and that nothing is saved', async () => {
    const work = fixture.handling(unexpected).withOutbox(async (tx, emit) => {
      emit(newEvent())
      await query(tx, 'select 1 / 0').catch(() => {})
    })
    await expect(work).rejects.toMatchObject({
      code: 'ROLLED_BACK',
      message: expect.stringMatching(/error was caught.*savepoint/) as string,
    })
    expect(await fixture.rows()).toEqual([])
  })

  it('rolls back the business when the events cannot be saved, and says why without the payload', async () => {
    const outbox = fixture.handling(unexpected, { table: 'missing' })
    await fixture.sql`create table payments (id int primary key)`
    const work = outbox.withOutbox(async (tx, emit) => {
      await query(tx, 'insert into payments values (1)')
      emit(newEvent({ payload: 'hunter2' }))
    })
    const error: Error = await work.then(
      () => expect.unreachable('there is no table'),
      (thrown) => thrown,
    )
    expect(error).toMatchObject({
      code: 'TABLE_MISSING',
      message: expect.stringMatching(/call migrate\(\)/),
    })
    expect(`${error.message} ${error.stack}`).not.toContain('hunter2')
    expect(await fixture.sql`select id from payments`).toEqual([])
  })

  it('says which rule of the table was broken, without the row', async () => {
    const outbox = fixture.handling(unexpected)
    await fixture.sql`alter table outbox add constraint no_secrets check (payload::text = 'null')`
    const error: Error = await outbox
      .withOutbox(async (_, emit) => emit(newEvent({ payload: 'hunter2' })))
      .then(
        () => expect.unreachable('the table refuses it'),
        (thrown) => thrown,
      )
    await fixture.sql`alter table outbox drop constraint no_secrets`
    expect(error).toMatchObject({
      message: expect.stringMatching(/no_secrets/),
      cause: { code: '23514' },
    })
    expect(inspect(error, { depth: null, showHidden: true })).not.toContain('hunter2')
  })

  it('refuses emit() outside a unit of work, and after its end', async () => {
    const outbox = fixture.handling(unexpected)
    expect(() => outbox.emit(newEvent())).toThrow(
      expect.objectContaining({ code: 'NO_UNIT_OF_WORK' }),
    )
    const late = await outbox.withOutbox((_, emit) => emit)
    expect(() => late(newEvent())).toThrow(expect.objectContaining({ code: 'UNIT_OF_WORK_OVER' }))
    expect(await fixture.rows()).toEqual([])
  })

  it('ends the unit of work with its callback also when that failed', async () => {
    const outbox = fixture.handling(unexpected)
    let late: { emit: Emit; tx: unknown } | undefined
    const work = outbox.withOutbox(async (tx, emit) => {
      late = { emit, tx }
      throw new Error('the business said no')
    })
    await expect(work).rejects.toThrow('the business said no')
    const over = expect.objectContaining({ code: 'UNIT_OF_WORK_OVER' })
    expect(() => late!.emit(newEvent())).toThrow(over)
    await expect(query(late!.tx, 'select 1')).rejects.toThrow(over)
  })

  it('keeps the payload as the very text that was emitted, for both paths', async () => {
    const sent: string[] = []
    const publisher = scriptedPublisher((event) => {
      sent.push(event.payload)
      return acked(event)
    })
    const payload = { b: 1, aa: { z: 1e21, y: -0 }, a: 'é \u2028 </script>', '': [] }
    const immediate = fixture.outbox({ publisher, threshold: '1m' })
    const fallback = fixture.outbox({ publisher })
    await immediate.start()
    await immediate.withOutbox(async (_, emit) => emit(newEvent({ payload })))
    await immediate.stop()
    await fallback.withOutbox(async (_, emit) => emit(newEvent({ payload })))
    expect(await fallback.pollOnce()).toBe(1)
    expect(sent).toEqual([JSON.stringify(payload), JSON.stringify(payload)])
  })

  it('does not let a forgotten statement behind the save undo it unnoticed', async () => {
    const handled: string[] = []
    const outbox = fixture.handling({ OrderCompleted: (event) => void handled.push(event.id) })
    await outbox.start()
    const saveIsUnderWay = defer()
    const forgotten = defer<Error>()
    await outbox.withOutbox(async (tx, emit) => {
      emit(newEvent())
      void saveIsUnderWay.promise.then(async () => {
        try {
          // It fails, and would turn the COMMIT that follows into a rollback that nobody hears of.
          await query(tx, 'select 1 / 0')
        } catch (error) {
          forgotten.resolve(error as Error)
        }
      })
      queueMicrotask(() => setImmediate(saveIsUnderWay.resolve))
    })
    expect(await forgotten.promise).toMatchObject({ code: 'UNIT_OF_WORK_OVER' })
    await outbox.stop()
    expect(await fixture.rows()).toMatchObject([{ id: handled[0], status: 'published' }])
  })

  it('passes the isolation level and access mode of a transaction through', async () => {
    const outbox = fixture.handling({})
    const level = await outbox.withOutbox(
      async (tx) => await query(tx, 'show transaction_isolation'),
      { isolationLevel: 'serializable' },
    )
    expect(level).toMatchObject([{ transaction_isolation: 'serializable' }])
    const writing = outbox.withOutbox(async (_, emit) => emit(newEvent()), {
      accessMode: 'read only',
    })
    await expect(writing).rejects.toThrow(/read-only transaction/)
  })

  it('finds the unit of work from any depth of the call stack, and joins it when nested', async () => {
    const outbox = fixture.handling({})
    const deep = async () => {
      await Promise.resolve()
      outbox.emit(newEvent({ type: 'Deep' }))
    }
    await outbox.withOutbox(async () => {
      await deep()
      await outbox.withOutbox(async (_, emit) => void emit(newEvent({ type: 'Joined' })))
    })
    const [transactions] = await fixture.sql`select count(distinct xmin::text)::int from outbox`
    expect(transactions?.['count']).toBe(1)
    expect((await fixture.rows()).map((row) => row.event_type)).toEqual(['Deep', 'Joined'])
  })
})
