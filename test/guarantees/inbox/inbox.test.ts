// Each event handled once per consumer: its effects and the record of it are one transaction, and a second delivery
// goes by the fate of the first.
import { sql as raw } from 'drizzle-orm'
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres'
import fc from 'fast-check'
import pg from 'pg'
import { expect, inject, it } from 'vitest'
import { createInbox } from '../../../src/inbox/inbox.ts'
import { UnreadableMessageError } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { connect } from '../../support/servers/database.ts'
import { defer } from '../../support/timing/deferred.ts'
import { useFixture } from '../../support/fixture.ts'
import { addEffect, useInbox, waitForSessions } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'

const fixture = useFixture()
const { inbox: create, effects, remembered } = useInbox(fixture)

function openPool(): pg.Pool {
  const pool = new pg.Pool({ connectionString: fixture.url })
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

/** Lets the first delivery finish when a second one waits for it; in any case, or nothing here would end. */
async function finishWhenWaitedFor(finish: { resolve: (value: void) => void }): Promise<void> {
  await waitForSessions(fixture.sql, 1).finally(finish.resolve)
}

it('refuses once() inside withOutbox(), and the other way round, which would be two transactions', async () => {
  const inbox = create()
  const outbox = fixture.handling({})
  const second = { code: 'NESTED', message: expect.stringMatching(/inbox\.onceIn\(tx/) as string }
  const consuming = outbox.withOutbox(async () => {
    await inbox.once({ id: 'e1' }, () => expect.fail('it is refused'))
  })
  await expect(consuming).rejects.toMatchObject(second)
  const emitting = inbox.once({ id: 'e2' }, async () => {
    await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  })
  await expect(emitting).rejects.toMatchObject(second)
  const nested = inbox.once({ id: 'e3' }, async () => {
    await inbox.once({ id: 'e4' }, () => expect.fail('it is refused'))
  })
  await expect(nested).rejects.toMatchObject(second)
  const bare = inbox.once({ id: 'e5' }, () => outbox.emit(newEvent()))
  await expect(bare).rejects.toMatchObject({ ...second, code: 'NO_UNIT_OF_WORK' })
  expect(await remembered()).toEqual([])
  expect(await fixture.rows()).toEqual([])
})

it('takes a unit of work that is over, and one on another database, for none', async () => {
  const inbox = create()
  const outbox = fixture.handling({})
  const elsewhere = connect(fixture.url)
  const other = createInbox({ db: elsewhere.db, consumer: 'elsewhere' })
  const over = defer()
  let late: Promise<unknown> | undefined
  await outbox.withOutbox(async () => {
    late = over.promise.then(() => inbox.once({ id: 'late' }, () => {}))
    expect(await other.once({ id: 'other' }, () => {})).toMatchObject({ outcome: 'handled' })
  })
  over.resolve()
  expect(await late).toMatchObject({ outcome: 'handled' })
  expect(await remembered()).toEqual(['billing/late', 'elsewhere/other'])
  await elsewhere.close()
})

it('handles an event once, however often it is delivered, and answers what the work did', async () => {
  const inbox = create()
  const handle = () =>
    inbox.once({ id: 'e1' }, async (tx, event) => {
      await addEffect(tx, event.id)
      return 'done'
    })
  expect(await handle()).toEqual({ outcome: 'handled', result: 'done' })
  expect(await handle()).toEqual({ outcome: 'duplicate' })
  expect(await create().once({ id: 'e1' }, () => expect.fail('called again'))).toEqual({
    outcome: 'duplicate',
  })
  expect(await effects()).toEqual(['e1'])
})

it('handles an event once for each consumer', async () => {
  for (const consumer of ['billing', 'mail', 'billing', 'mail']) {
    await create({ consumer }).once({ id: 'e1' }, (tx) => addEffect(tx, 'e1', consumer))
  }
  expect(await remembered()).toEqual(['billing/e1', 'mail/e1'])
  expect(await effects()).toEqual(['e1', 'e1'])
})

it('keeps nothing when the work throws, lets its error out as it is, and handles the next delivery', async () => {
  const inbox = create()
  const mine = new TypeError('not now')
  const failing = inbox.once({ id: 'e1' }, async (tx) => {
    await addEffect(tx, 'e1')
    throw mine
  })
  expect(await failing.catch((error: unknown) => error)).toBe(mine)
  expect([await remembered(), await effects()]).toEqual([[], []])
  expect(await inbox.once({ id: 'e1' }, (tx) => addEffect(tx, 'e1'))).toMatchObject({
    outcome: 'handled',
  })
  expect(await effects()).toEqual(['e1'])
})

it.each(['none', 'aggregate'] as const)(
  'makes a second delivery wait for the first, and calls it a duplicate if that commits (order %s)',
  async (order) => {
    const message = { id: 'e1', aggregateType: 'order', aggregateId: 'a', seq: 1 }
    const [begun, finish] = [defer(), defer()]
    const first = create({ order }).once(message, async (tx) => {
      begun.resolve()
      await finish.promise
      await addEffect(tx, 'e1')
    })
    await begun.promise
    const second = create({ order }).once(message, (tx) => addEffect(tx, 'e1'))
    await finishWhenWaitedFor(finish)
    expect(await first).toMatchObject({ outcome: 'handled' })
    expect(await second).toEqual({ outcome: 'duplicate' })
    expect(await effects()).toEqual(['e1'])
  },
)

it.each(['none', 'aggregate'] as const)(
  'lets a second delivery handle the event if the first rolls back (order %s)',
  async (order) => {
    const message = { id: 'e1', aggregateType: 'order', aggregateId: 'a', seq: 1 }
    const [begun, finish] = [defer(), defer()]
    const first = create({ order }).once(message, async (tx) => {
      await addEffect(tx, 'first')
      begun.resolve()
      await finish.promise
      throw new Error('not me')
    })
    await begun.promise
    const second = create({ order }).once(message, (tx) => addEffect(tx, 'second'))
    await finishWhenWaitedFor(finish)
    await expect(first).rejects.toThrow('not me')
    expect(await second).toMatchObject({ outcome: 'handled' })
    expect(await effects()).toEqual(['second'])
  },
)

it('lets a second delivery handle the event if the connection of the first dies', async () => {
  // Not on postgres.js, which throws past everybody when that happens.
  const pool = openPool()
  const doomed = createInbox({ db: drizzleNodePostgres(pool), consumer: 'billing' })
  const begun = defer<number>()
  const first = doomed.once({ id: 'e1' }, async (tx) => {
    await addEffect(tx, 'first')
    const { rows } = await tx.execute(raw`select pg_backend_pid() as pid`)
    begun.resolve(rows[0]!['pid'] as number)
    await tx.execute(raw`select pg_sleep(60)`)
  })
  const lost = first.then(
    () => 'committed',
    () => 'lost',
  )
  const pid = await begun.promise
  const second = create().once({ id: 'e1' }, (tx) => addEffect(tx, 'second'))
  await fixture.sql`select pg_terminate_backend(${pid})`
  expect(await lost).toBe('lost')
  expect(await second).toMatchObject({ outcome: 'handled' })
  expect(await effects()).toEqual(['second'])
  await pool.end()
})

it('does not say "handled" when a statement failed, its error was caught, and Postgres rolls back', async () => {
  const pool = openPool()
  const db = drizzleNodePostgres(pool)
  const inbox = createInbox({ db, consumer: 'billing' })
  const careless = inbox.once({ id: 'e1' }, async (tx) => {
    await addEffect(tx, 'e1')
    await tx.execute(raw`select 1 / 0`).catch(() => {})
  })
  await expect(careless).rejects.toMatchObject({ code: 'ROLLED_BACK' })
  await expect(careless).rejects.toThrow(/savepoint/)
  const nested = db.transaction(async (tx) => {
    const inner = inbox.onceIn(tx, { id: 'e2' }, async (savepoint) => {
      await savepoint.execute(raw`select 1 / 0`).catch(() => {})
    })
    await expect(inner).rejects.toThrow(/savepoint/)
    await addEffect(tx, 'the rest')
  })
  await nested
  expect([await remembered(), await effects()]).toEqual([[], ['the rest']])
  await inbox.once({ id: 'e1' }, async (tx) => {
    await tx.transaction((savepoint) => savepoint.execute(raw`select 1 / 0`)).catch(() => {})
    await addEffect(tx, 'e1')
  })
  expect(await effects()).toEqual(['the rest', 'e1'])
  await pool.end()
})

it('closes the transaction to work that was not awaited', async () => {
  const [returned, tried] = [defer(), defer<unknown>()]
  const outcome = await create().once({ id: 'e1' }, async (tx) => {
    const forgotten = returned.promise.then(() => tx.execute(raw`select 1 / 0`))
    forgotten.catch(tried.resolve)
  })
  returned.resolve()
  expect(outcome).toMatchObject({ outcome: 'handled' })
  expect(await tried.promise).toMatchObject({ code: 'UNIT_OF_WORK_OVER' })
})

it('does not say "handled" while a nested transaction that nobody awaited is still running', async () => {
  const inbox = create()
  const release = defer()
  let forgotten: Promise<unknown> = Promise.resolve()
  const failing = inbox.once({ id: 'e1' }, async (tx) => {
    forgotten = tx
      .transaction(async (nested) => {
        await release.promise
        await addEffect(nested, 'e1')
      })
      .catch((error: unknown) => error)
    await tx.execute(raw`select 1`)
  })
  await expect(failing).rejects.toMatchObject({ code: 'UNIT_OF_WORK_OVER' })
  release.resolve()
  expect(await forgotten).toMatchObject({ code: 'UNIT_OF_WORK_OVER' })
  expect(await remembered()).toEqual([])
  expect(await effects()).toEqual([])
})

it('does not say "handled" of effects that a nested transaction beside them took along', async () => {
  const failing = create().once({ id: 'e1' }, async (tx) => {
    const begun = defer()
    const first = tx
      .transaction(async () => {
        await begun.promise
        throw new Error('not now')
      })
      .catch(() => {})
    await tx.transaction(async (inner) => {
      await addEffect(inner, 'e1')
      begun.resolve()
      await first
    })
  })
  await expect(failing).rejects.toMatchObject({ code: 'NESTED' })
  expect(await remembered()).toEqual([])
})

it('closes a nested transaction to what it leaves behind', async () => {
  await create().once({ id: 'e1' }, async (tx) => {
    const late = await tx.transaction(async (nested) => nested)
    await expect(async () => addEffect(late, 'e1')).rejects.toMatchObject({
      code: 'UNIT_OF_WORK_OVER',
    })
  })
  expect(await effects()).toEqual([])
})

it('records inside a transaction that is open already, and goes with it', async () => {
  const inbox = create()
  const doomed = fixture.db.transaction(async (tx) => {
    const outcome = await inbox.onceIn(tx, { id: 'e1' }, (inner) => addEffect(inner, 'e1'))
    expect(outcome).toMatchObject({ outcome: 'handled' })
    throw new Error('after all not')
  })
  await expect(doomed).rejects.toThrow('after all not')
  expect([await remembered(), await effects()]).toEqual([[], []])
  const outcomes = await fixture.db.transaction(async (tx) => [
    await inbox.onceIn(tx, { id: 'e1' }, (inner) => addEffect(inner, 'e1')),
    await inbox.onceIn(tx, { id: 'e1' }, (inner) => addEffect(inner, 'e1')),
  ])
  expect(outcomes).toEqual([{ outcome: 'handled', result: undefined }, { outcome: 'duplicate' }])
  expect(await effects()).toEqual(['e1'])
})

it('takes the record back with the effects when the work fails in an open transaction that goes on', async () => {
  const inbox = create()
  await fixture.db.transaction(async (tx) => {
    const failing = inbox.onceIn(tx, { id: 'e1' }, async (inner) => {
      await addEffect(inner, 'e1')
      throw new Error('poison')
    })
    await expect(failing).rejects.toThrow('poison')
    await inbox.onceIn(tx, { id: 'e2' }, (inner) => addEffect(inner, 'e2'))
  })
  expect(await remembered()).toEqual(['billing/e2'])
  expect(await effects()).toEqual(['e2'])
})

it('refuses a second event beside another in one transaction, whose savepoint would undo both', async () => {
  const inbox = create()
  await fixture.db.transaction(async (tx) => {
    const begun = defer()
    const first = inbox.onceIn(tx, { id: 'e1' }, async () => {
      await begun.promise
      throw new Error('not now')
    })
    const failed = first.catch((error: Error) => error.message)
    const second = inbox.onceIn(tx, { id: 'e2' }, async (inner) => {
      await addEffect(inner, 'e2')
      begun.resolve()
      await failed
    })
    await expect(second.finally(begun.resolve)).rejects.toMatchObject({ code: 'NESTED' })
    expect(await failed).toBe('not now')
    await inbox.onceIn(tx, { id: 'e2' }, (inner) => addEffect(inner, 'e2'))
  })
  expect(await remembered()).toEqual(['billing/e2'])
  expect(await effects()).toEqual(['e2'])
})

it('handles one event inside another, each with its own fate', async () => {
  const inbox = create()
  await fixture.db.transaction(async (outer) => {
    await inbox.onceIn(outer, { id: 'e1' }, async (tx) => {
      await addEffect(tx, 'e1')
      const failing = inbox.onceIn(tx, { id: 'e2' }, async (inner) => {
        await addEffect(inner, 'e2')
        throw new Error('not now')
      })
      await expect(failing).rejects.toThrow('not now')
    })
  })
  expect(await remembered()).toEqual(['billing/e1'])
  expect(await effects()).toEqual(['e1'])
})

it('consumes, changes and emits in one transaction, or does none of it', async () => {
  const outbox = fixture.outbox({ publisher: handlersPublisher({ handlers: {} }) })
  const inbox = create()
  const consume = (fails: boolean) =>
    outbox.withOutbox((tx, emit) =>
      inbox.onceIn(tx, { id: 'e1' }, async (inner) => {
        await addEffect(inner, 'e1')
        emit(newEvent({ type: 'Charged' }))
        if (fails) throw new Error('no')
      }),
    )
  await expect(consume(true)).rejects.toThrow('no')
  expect([await remembered(), await effects(), await fixture.rows()]).toEqual([[], [], []])
  expect(await consume(false)).toMatchObject({ outcome: 'handled' })
  expect(await consume(false)).toEqual({ outcome: 'duplicate' })
  expect(await effects()).toEqual(['e1'])
  expect(await fixture.rows()).toMatchObject([{ event_type: 'Charged' }])
})

it('takes back what was emitted when the work fails and the unit of work goes on', async () => {
  const outbox = fixture.outbox({ publisher: handlersPublisher({ handlers: {} }) })
  const inbox = create()
  await outbox.withOutbox(async (tx, emit) => {
    const failing = inbox.onceIn(tx, { id: 'e1' }, async () => {
      emit(newEvent({ type: 'Charged' }))
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    emit(newEvent({ type: 'ChargeFailed' }))
  })
  expect(await remembered()).toEqual([])
  expect(await fixture.rows()).toMatchObject([{ event_type: 'ChargeFailed' }])
})

it.each([
  ['none', 'repeatable read'],
  ['aggregate', 'read committed'],
] as const)(
  'calls a duplicate what it is where transactions begin above read committed (order %s is %s)',
  async (order, level) => {
    // Past any PgBouncer, which takes no settings of a session.
    const direct = new URL(inject('directDatabaseUrl'))
    direct.pathname = new URL(fixture.url).pathname
    const strict = connect(direct.href, {
      connection: { default_transaction_isolation: 'repeatable read' },
    })
    const message = { id: 'e1', aggregateType: 'order', aggregateId: 'a', seq: 1 }
    const [begun, finish] = [defer(), defer()]
    const levels: unknown[] = []
    const first = create({ order }).once(message, async (tx) => {
      begun.resolve()
      await finish.promise
      await addEffect(tx, 'e1')
    })
    await begun.promise
    const inbox = create({ order, db: strict.db })
    const second = inbox.once(message, () => expect.fail('called again'))
    await finishWhenWaitedFor(finish)
    await first
    expect(await second).toEqual({ outcome: 'duplicate' })
    await inbox.once({ ...message, id: 'e2', seq: 2 }, async (tx) => {
      const [row] = await tx.execute(raw`show transaction_isolation`)
      levels.push(row!['transaction_isolation'])
    })
    expect(levels).toEqual([level])
    await strict.close()
  },
)

it('leaves a conflict in an open transaction above read committed to whoever opened it', async () => {
  const inbox = create()
  const elsewhere = connect(fixture.url)
  const sibling = create({ db: elsewhere.db })
  let tries = 0
  const outbox = fixture.outbox({ publisher: handlersPublisher({ handlers: {} }) })
  const outcome = await outbox.withOutbox(
    async (tx) => {
      tries += 1
      await tx.execute(raw`select 1`)
      // Committed by somebody else after this transaction took its snapshot.
      await sibling.once({ id: 'e1' }, () => {})
      return await inbox.onceIn(tx, { id: 'e1' }, () => expect.fail('called again'))
    },
    { isolationLevel: 'repeatable read', retry: 3 },
  )
  expect(outcome).toEqual({ outcome: 'duplicate' })
  expect(tries).toBe(2)
  await elsewhere.close()
})

it('refuses a message without an event id, calls nothing and keeps nothing', async () => {
  const message = { value: Buffer.from('{"id":"secret"}'), headers: { other: 'x' } }
  const refused = create().once(message, () => expect.fail('called'))
  await expect(refused).rejects.toMatchObject({ code: 'MESSAGE_UNREADABLE' })
  await expect(refused).rejects.toThrow(/event-id/)
  await expect(refused).rejects.not.toThrow(/secret/)
  expect(await remembered()).toEqual([])
})

it('handles or refuses anything; nothing is half saved', async () => {
  const inboxes = { none: create(), aggregate: create({ consumer: 'ordered', order: 'aggregate' }) }
  const odd = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 20 }),
    fc.constantFrom('x'.repeat(256), 'ä'.repeat(300), 'a\u0000b', '\ud800', '', null, 1.5, {}),
    fc.integer(),
    fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }),
    fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes)),
  )
  const text = fc.oneof(odd, fc.string({ maxLength: 20 }))
  const verdict = (error: unknown) => ({
    outcome: error instanceof UnreadableMessageError ? 'refused' : error,
  })
  let handled = 0
  const property = fc.asyncProperty(text, text, odd, async (id, aggregateId, seq) => {
    const message = { id, aggregateType: 'order', aggregateId, seq } as never
    for (const inbox of Object.values(inboxes)) {
      await fixture.sql`delete from inbox`
      await fixture.sql`delete from effects`
      const deliver = () => inbox.once(message, (tx) => addEffect(tx, 'effect')).catch(verdict)
      const [first, second] = [await deliver(), await deliver()]
      const isHandled = first.outcome === 'handled'
      if (isHandled) handled += 1
      expect([first.outcome, second.outcome]).toEqual(
        isHandled ? ['handled', 'duplicate'] : ['refused', 'refused'],
      )
      const saved = isHandled ? 1 : 0
      expect(await remembered()).toHaveLength(saved)
      expect(await effects()).toHaveLength(saved)
    }
  })
  await fc.assert(property, { seed: 1, numRuns: 120 })
  // Or it proves little.
  expect(handled).toBeGreaterThan(30)
})

it('says of a duplicate no more than what identifies the event', async () => {
  const logger = recordingLogger()
  const inbox = create({ logger })
  const message = { id: 'e1', type: 'OrderPlaced', payload: { secret: 1 } }
  await inbox.once(message, () => {})
  await inbox.once(message, () => {})
  expect(logger.lines).toEqual([
    {
      level: 'debug',
      fields: { consumer: 'billing', event: { id: 'e1', type: 'OrderPlaced' } },
      message: expect.stringContaining('handled before') as string,
    },
  ])
})

it('takes a function behind the message', async () => {
  await expect(create().once({ id: 'e1' }, undefined as never)).rejects.toThrow(/takes a function/)
})
