// Savepoints and nesting: what is rolled back takes its events with it, and only its own.
import { beforeAll, expect, it } from 'vitest'
import type { AnyDatabase } from '../../../src/index.ts'
import { isSerializationFailure } from '../../../src/store/database.ts'
import { directUrl } from '../../support/servers/database.ts'
import { defer } from '../../support/timing/deferred.ts'
import { ALL_DRIVERS, SERVED_DRIVERS } from '../../support/drivers.ts'
import { describeEach, type Fixture } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'

const named = (type: string) => newEvent({ type })
const refuse = () => {
  throw new Error('refused')
}

function useAccounts(fixture: Fixture<AnyDatabase>) {
  beforeAll(async () => {
    await fixture.sql`create table accounts (id int primary key, balance int not null)`
  })
  return { savedTypes: async () => (await fixture.rows()).map((row) => row.event_type) }
}

describeEach(ALL_DRIVERS, (fixture) => {
  const { query, nest } = fixture.driver
  const { savedTypes } = useAccounts(fixture)

  it('drops the events of a nested transaction that rolls back, and keeps the others in order', async () => {
    const outbox = fixture.handling({})
    await outbox.withOutbox(async (tx, emit) => {
      emit(named('before'))
      await nest(tx, async (kept) => {
        emit(named('kept'))
        await nest(kept, async (inner) => {
          await query(inner, 'select 1')
          outbox.emit(named('kept inside'))
        })
        await expect(
          nest(kept, async (doomed) => {
            outbox.emit(named('dropped'))
            await nest(doomed, async () => void emit(named('dropped with its parent')))
            refuse()
          }),
        ).rejects.toThrow('refused')
      })
      emit(named('after'))
    })
    expect(await savedTypes()).toEqual(['before', 'kept', 'kept inside', 'after'])
  })

  it('keeps apart savepoints and work that run side by side', async () => {
    const outbox = fixture.handling({})
    await outbox.withOutbox(async (tx, emit) => {
      const inside = defer()
      const nested = nest(tx, async () => {
        emit(named('in the savepoint'))
        inside.resolve()
        refuse()
      })
      await inside.promise
      emit(named('beside it'))
      await expect(nested).rejects.toThrow('refused')
    })
    expect(await savedTypes()).toEqual(['beside it'])
  })

  it('forgives an event refused in a savepoint that rolled back, but not one in the rest', async () => {
    const outbox = fixture.handling({})
    await outbox.withOutbox(async (tx, emit) => {
      emit(named('good'))
      await expect(
        nest(tx, async () => void emit(newEvent({ payload: 1n }))),
      ).rejects.toMatchObject({ code: 'PAYLOAD_NOT_JSON' })
    })
    expect(await savedTypes()).toEqual(['good'])
  })

  it('refuses to commit while a nested transaction that nobody awaited is still running', async () => {
    const outbox = fixture.handling({})
    const release = defer()
    let forgotten: Promise<unknown> = Promise.resolve()
    const work = outbox.withOutbox(async (tx, emit) => {
      emit(named('never saved'))
      forgotten = nest(tx, () => release.promise).catch(() => {})
    })
    await expect(work).rejects.toMatchObject({ code: 'UNIT_OF_WORK_OVER' })
    release.resolve()
    await forgotten
    expect(await savedTypes()).toEqual([])
  })

  it('refuses to commit what a nested transaction undid that rolled back beside it', async () => {
    const outbox = fixture.handling({})
    const begun = defer()
    const work = outbox.withOutbox(async (tx, emit) => {
      const first = nest(tx, () => begun.promise.then(refuse)).catch(() => {})
      const second = nest(tx, async (inner) => {
        await query(inner, 'insert into accounts values (9, 0)')
        emit(named('of what was undone'))
        begun.resolve()
        await first
      })
      await second.catch(() => {})
    })
    await expect(work).rejects.toMatchObject({ code: 'NESTED' })
    expect(await savedTypes()).toEqual([])
    expect(await fixture.sql`select id from accounts`).toEqual([])
  })

  it('does not commit without an event that was emitted after its savepoint had ended', async () => {
    const outbox = fixture.handling({})
    const work = outbox.withOutbox(async (tx, emit) => {
      emit(named('never saved'))
      const ended = defer()
      let late: Promise<unknown> = Promise.resolve()
      await nest(tx, async () => {
        late = ended.promise.then(() => outbox.emit(named('too late')))
      })
      ended.resolve()
      // Caught by the application, which would otherwise commit without the event.
      await expect(late).rejects.toMatchObject({ code: 'UNIT_OF_WORK_OVER' })
    })
    await expect(work).rejects.toThrow(/nested transaction had ended/)
    expect(await savedTypes()).toEqual([])
  })

  it('refuses what a savepoint leaves behind when it is over', async () => {
    const outbox = fixture.handling({})
    await outbox.withOutbox(async (tx) => {
      const late = await nest(tx, async (inner) => inner)
      await expect(async () => await query(late, 'select 1')).rejects.toMatchObject({
        code: 'UNIT_OF_WORK_OVER',
      })
    })
  })

  it('makes withOutbox() inside withOutbox() a savepoint with nested: savepoint', async () => {
    const outbox = fixture.handling({})
    await outbox.withOutbox(async (_, emit) => {
      emit(named('outer'))
      await expect(
        outbox.withOutbox(
          async (tx, innerEmit) => {
            await query(tx, 'insert into accounts values (1, 0)')
            innerEmit(named('inner'))
            refuse()
          },
          { nested: 'savepoint' },
        ),
      ).rejects.toThrow('refused')
      await outbox.withOutbox(async (__, innerEmit) => void innerEmit(named('kept')), {
        nested: 'savepoint',
      })
    })
    expect(await savedTypes()).toEqual(['outer', 'kept'])
    expect(await fixture.sql`select 1 from accounts`).toEqual([])
  })

  it('rolls all of it back when a unit of work that joined it failed, even if the error was caught', async () => {
    const outbox = fixture.handling({})
    const work = outbox.withOutbox(async (_, emit) => {
      emit(named('outer'))
      const inner = outbox.withOutbox(async (tx, innerEmit) => {
        await query(tx, 'insert into accounts values (3, 0)')
        innerEmit(named('inner'))
        refuse()
      })
      await expect(inner).rejects.toThrow('refused')
    })
    await expect(work).rejects.toMatchObject({
      code: 'NESTED',
      message: expect.stringContaining("nested: 'savepoint'"),
      cause: expect.objectContaining({ message: 'refused' }),
    })
    expect(await savedTypes()).toEqual([])
    expect(await fixture.sql`select 1 from accounts`).toEqual([])
  })

  it('keeps the rest when one failed that had joined a savepoint which rolled back', async () => {
    const outbox = fixture.handling({})
    await outbox.withOutbox(async (tx, emit) => {
      emit(named('outer'))
      const nested = nest(tx, async () => await outbox.withOutbox(async () => refuse()))
      await expect(nested).rejects.toThrow('refused')
    })
    expect(await savedTypes()).toEqual(['outer'])
  })

  it('refuses a unit of work inside that of another outbox on the same database', async () => {
    const [outer, inner] = [fixture.handling({}), fixture.handling({})]
    await outer.withOutbox(async (_, emit) => {
      emit(named('outer'))
      await expect(inner.withOutbox(async () => {})).rejects.toMatchObject({
        code: 'NESTED',
        message: expect.stringContaining('use one outbox for both'),
      })
    })
    expect(await savedTypes()).toEqual(['outer'])
  })

  it.each(['commit', 'rollback', 'rollback to savepoint sp1', 'select 1; commit'])(
    'refuses %j and goes on',
    async (text) => {
      const outbox = fixture.handling({})
      await outbox.withOutbox(async (tx, emit) => {
        emit(named('kept'))
        await nest(tx, async (inner) => {
          await expect(query(inner, text)).rejects.toMatchObject({ code: 'TRANSACTION_CONTROL' })
          emit(named('kept too'))
        })
      })
      expect(await savedTypes()).toEqual(['kept', 'kept too'])
    },
  )

  it('rejects, and does not throw, when its transaction is used after the end', async () => {
    const outbox = fixture.handling({})
    const late = await outbox.withOutbox(async (tx) => tx)
    let caught: unknown
    await query(late, 'select 1').catch((error: unknown) => {
      caught = error
    })
    expect(caught).toMatchObject({ code: 'UNIT_OF_WORK_OVER' })
  })

  it('begins a unit of its own for work that an earlier unit has set off', async () => {
    const outbox = fixture.handling({})
    const earlierIsOver = defer()
    let later: Promise<unknown> = Promise.resolve()
    await outbox.withOutbox(async (_, emit) => {
      emit(named('earlier'))
      later = earlierIsOver.promise.then(() =>
        outbox.withOutbox(async (__, laterEmit) => laterEmit(named('later'))),
      )
    })
    earlierIsOver.resolve()
    await later
    expect(await savedTypes()).toEqual(['earlier', 'later'])
  })

  it('refuses to nest with nested: error, and refuses settings that only the outer one can have', async () => {
    const outbox = fixture.handling({})
    await outbox.withOutbox(async () => {
      await expect(outbox.withOutbox(async () => {}, { nested: 'error' })).rejects.toMatchObject({
        code: 'NESTED',
      })
      await expect(
        outbox.withOutbox(async () => {}, { isolationLevel: 'serializable' }),
      ).rejects.toThrow(/isolationLevel cannot be set/)
    })
  })
})

// It takes a second session to get in between.
describeEach(SERVED_DRIVERS, (fixture) => {
  const { query, nest } = fixture.driver
  const { savedTypes } = useAccounts(fixture)

  it.each([
    ['ends well', async () => {}],
    ['fails', async () => refuse()],
  ])(
    'lets no nested transaction that was forgotten and %s touch the next transaction',
    async (_, end) => {
      const release = defer()
      // One connection: what the first unit of work left behind would meet the second one on it.
      const { db, close } = fixture.driver.open(directUrl(fixture.url), { max: 1 })
      const outbox = fixture.handling({}, { db })
      let forgotten: Promise<unknown> = Promise.resolve()
      const first = outbox.withOutbox(async (tx) => {
        forgotten = nest(tx, () => release.promise.then(end)).catch((error: unknown) => error)
        await query(tx, 'select 1')
      })
      await expect(first).rejects.toMatchObject({ code: 'UNIT_OF_WORK_OVER' })
      await outbox.withOutbox(async (tx, emit) => {
        await nest(tx, async (inner) => {
          await query(inner, 'insert into accounts values (7, 0)')
          release.resolve()
          expect(await forgotten).toBeInstanceOf(Error)
          // On the same connection, so behind whatever was sent for the one that was forgotten.
          await query(inner, 'select 1')
          emit(named('second'))
        })
      })
      expect(await fixture.sql`delete from accounts where id = 7 returning id`).toHaveLength(1)
      expect(await savedTypes()).toEqual(['second'])
      await outbox.stop()
      await close()
    },
  )

  it('runs the work again, with its events reset, when Postgres could not serialize it', async () => {
    const outbox = fixture.handling({})
    await fixture.sql`insert into accounts values (2, 0)`
    let runs = 0
    await outbox.withOutbox(
      async (tx, emit) => {
        runs += 1
        emit(named(`run ${runs}`))
        await query(tx, 'select balance from accounts where id = 2')
        // Somebody else gets in between, the first time.
        if (runs === 1) await fixture.sql`update accounts set balance = balance + 1 where id = 2`
        await query(tx, 'update accounts set balance = balance + 10 where id = 2')
      },
      { isolationLevel: 'repeatable read', retry: 2 },
    )
    expect(await savedTypes()).toEqual(['run 2'])
    expect(await fixture.sql`select balance from accounts where id = 2`).toEqual([{ balance: 11 }])
  })

  it('hands the failure on when the retries are used up, or without any', async () => {
    const outbox = fixture.handling({})
    await fixture.sql`insert into accounts values (3, 0)`
    let runs = 0
    const clash = (retry: number) =>
      outbox.withOutbox(
        async (tx) => {
          runs += 1
          await query(tx, 'select balance from accounts where id = 3')
          await fixture.sql`update accounts set balance = balance + 1 where id = 3`
          await query(tx, 'update accounts set balance = 0 where id = 3')
        },
        { isolationLevel: 'repeatable read', retry },
      )
    await expect(clash(0)).rejects.toSatisfy(isSerializationFailure)
    expect(runs).toBe(1)
    await expect(clash(2)).rejects.toSatisfy(isSerializationFailure)
    expect(runs).toBe(4)
  })
})
