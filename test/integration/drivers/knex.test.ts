// Knex: what its transactions can do inside a unit of work, what they may not, and that no connection is lost by the pool,
// however a transaction ends.
import { type Knex, knex } from 'knex'
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { knexDatabase } from '../../../src/drivers/knex.ts'
import { sql } from '../../../src/drivers/sql.ts'
import { createOutbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { directUrl } from '../../support/servers/database.ts'
import { useFixture } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
const publisher = handlersPublisher({ handlers: { OrderCompleted: () => {} } })
let db: Knex
beforeAll(async () => {
  await fixture.sql`create table orders (id serial primary key, customer text unique deferrable initially deferred)`
})
beforeEach(() => {
  // One connection: whoever keeps it makes the next wait for ever.
  db = knex({ client: 'pg', connection: directUrl(fixture.url), pool: { min: 0, max: 1 } })
})
afterEach(async () => {
  await fixture.sql`truncate orders`
  await db.destroy()
})

const open = () => createOutbox({ db: knexDatabase(db), publisher, poller: false })
const savedTypes = async () => (await fixture.rows()).map((row) => row.event_type)
const customers = async () =>
  (await fixture.sql`select customer from orders order by id`).map(
    (row) => row['customer'] as string,
  )

async function expectUsable() {
  await open().withOutbox(async (tx, emit) => {
    await tx.raw('select 1')
    emit(newEvent({ type: 'Afterwards' }))
  })
  expect(await savedTypes()).toEqual(['Afterwards'])
}

it('runs builders of every kind in the transaction, and nests them', async () => {
  await open().withOutbox(async (tx, emit) => {
    await tx('orders').insert({ customer: 'function' })
    await tx.insert({ customer: 'method' }).into('orders')
    await db('orders').insert({ customer: 'transacting' }).transacting(tx)
    await tx.raw('insert into orders (customer) values (?)', ['raw'])
    await tx.batchInsert('orders', [{ customer: 'batch' }], 1)
    expect(await tx.schema.hasTable('orders')).toBe(true)
    const undone = tx.transaction(async (inner) => {
      await inner('orders').insert({ customer: 'undone' })
      emit(newEvent({ type: 'Undone' }))
      throw new Error('no')
    })
    await expect(undone).rejects.toThrow('no')
    await tx.savepoint(async (inner) => inner('orders').insert({ customer: 'kept' }))
    emit(newEvent({ type: 'Kept' }))
  })
  expect(await customers()).toEqual(['function', 'method', 'transacting', 'raw', 'batch', 'kept'])
  expect(await savedTypes()).toEqual(['Kept'])
})

it.each<[string, (tx: Knex.Transaction) => unknown]>([
  ['commit()', (tx) => tx.commit()],
  ['rollback()', (tx) => tx.rollback()],
  ['a raw statement', (tx) => tx.raw('commit')],
  ['one of several', (tx) => tx.raw('select 1; rollback')],
  ['a nested transaction without a callback', (tx) => tx.transaction()],
  ['a provider', (tx) => tx.transactionProvider()()],
  ['a statement of its client', (tx) => (tx.client as Knex.Client).query(null, 'COMMIT;')],
])('refuses to end the transaction behind its back with %s, and goes on', async (_, end) => {
  await open().withOutbox(async (tx, emit) => {
    await expect(async () => await end(tx)).rejects.toMatchObject({ code: 'TRANSACTION_CONTROL' })
    emit(newEvent({ type: 'Afterwards' }))
  })
  expect(await savedTypes()).toEqual(['Afterwards'])
})

it('refuses what was made in time and runs too late', async () => {
  const late = await open().withOutbox(async (tx) => ({ tx, builder: tx('orders').select() }))
  const over = { code: 'UNIT_OF_WORK_OVER' }
  await expect((async () => await late.builder)()).rejects.toMatchObject(over)
  await expect((async () => await db('orders').transacting(late.tx))()).rejects.toMatchObject(over)
  await expect(late.tx.transaction(async () => {})).rejects.toMatchObject(over)
  const after = await knexDatabase(db).begin(async ({ tx }) => tx)
  await expect((async () => await after.raw('select 1'))()).rejects.toMatchObject(over)
})

it('fails when Postgres answers COMMIT with ROLLBACK, and publishes nothing', async () => {
  const swallowed = open().withOutbox(async (tx) => {
    await tx.raw('select 1 / 0').catch(() => {})
  })
  await expect(swallowed).rejects.toMatchObject({ code: 'ROLLED_BACK' })
  // Behind the save, where a unit of work lets nobody: the events are there, and go with the rest.
  const behind = knexDatabase(db).begin(async (unit) => {
    await unit.query(sql`create table gone (id int)`)
    await unit.query(sql`select 1 / 0`).catch(() => {})
  })
  await expect(behind).rejects.toMatchObject({ code: 'ROLLED_BACK' })
  expect(await fixture.sql`select to_regclass('gone') as gone`).toEqual([{ gone: null }])
  await expectUsable()
})

it('takes no rollback for a success, not even one without an error', async () => {
  const work = open().withOutbox(async (_, emit) => {
    emit(newEvent())
    // oxlint-disable-next-line typescript/only-throw-error
    throw undefined
  })
  const outcome = await work.then(
    () => 'resolved',
    (error: unknown) => ({ error }),
  )
  expect(outcome).toEqual({ error: undefined })
  await expectUsable()
})

it('gives its connection back when COMMIT is refused, and says what Postgres said', async () => {
  const refused = open().withOutbox(async (tx, emit) => {
    emit(newEvent())
    await tx('orders').insert([{ customer: 'Ada' }, { customer: 'Ada' }])
  })
  await expect(refused).rejects.toMatchObject({ code: '23505' })
  await expectUsable()
})

it('fails when its connection dies in a transaction, with nobody listening for it, and drops it', async () => {
  const failed = open().withOutbox(async (tx, emit) => {
    emit(newEvent())
    const { rows } = (await tx.raw('select pg_backend_pid() as pid')) as { rows: { pid: number }[] }
    await fixture.sql`select pg_terminate_backend(${rows[0]!.pid})`
    const isGone = async () => {
      try {
        await tx.raw('select 1')
        return false
      } catch {
        return true
      }
    }
    await waitUntil(isGone, { message: 'the connection is gone' })
  })
  await expect(failed).rejects.toThrow(/terminat|not queryable|ECONNRESET/)
  await expectUsable()
})

it('begins with every setting, also those that Knex does not know', async () => {
  const settings = {
    isolationLevel: 'serializable',
    accessMode: 'read only',
    deferrable: true,
  } as const
  const shown = await open().withOutbox(async (tx) => {
    const show = async (name: string) =>
      (await tx.raw<{ rows: Record<string, string>[] }>(`show transaction_${name}`)).rows[0]
    return [await show('isolation'), await show('read_only'), await show('deferrable')]
  }, settings)
  expect(shown.map((row) => Object.values(row!)[0])).toEqual(['serializable', 'on', 'on'])
})

it('watches transactions with a callback on outbox.db, with their settings, and refuses others', async () => {
  const outbox = open()
  const work = outbox.db.transaction(async () => void outbox.emit(newEvent()), { readOnly: true })
  await expect(work).rejects.toThrow(/read-only transaction/)
  await outbox.db.transaction(async (tx) => {
    await tx('orders').insert({ customer: 'Ada' })
    outbox.emit(newEvent({ type: 'Watched' }))
  })
  expect(await outbox.db('orders').select('customer')).toEqual([{ customer: 'Ada' }])
  for (const begin of [
    () => outbox.db.transaction(),
    () => outbox.db.transaction({ readOnly: true }),
    () => outbox.db.transaction(async () => {}, { connection: {} }),
    async () => outbox.db.transactionProvider(),
  ]) {
    await expect(begin()).rejects.toThrow(/emitIn\(tx, event\)/)
  }
  expect(await savedTypes()).toEqual(['Watched'])
})

it('saves into a transaction without a callback with emitIn(), as long as it is open', async () => {
  const outbox = open()
  const tx = await db.transaction()
  await outbox.emitIn(tx, newEvent({ type: 'Kept' }))
  const inner = await tx.transaction()
  await outbox.emitIn(inner, newEvent({ type: 'Undone' }))
  await inner.rollback()
  await tx.commit()
  await expect(outbox.emitIn(tx, newEvent())).rejects.toMatchObject({ code: 'OPTIONS_INVALID' })
  expect(await savedTypes()).toEqual(['Kept'])
})

it('leaves what transaction() returns as Knex made it', async () => {
  open()
  const queries: string[] = []
  const begun = db.transaction(
    async (tx) => void (await tx.raw('select 1')),
  ) as unknown as Promise<void> & {
    on(event: string, listener: (query: { sql: string }) => void): unknown
  }
  begun.on('query', (query) => queries.push(query.sql))
  await begun
  expect(queries).toContain('select 1')
})

it('takes a Knex on node-postgres, not a transaction', async () => {
  await db.transaction(async (tx) => {
    expect(() => knexDatabase(tx)).toThrow(/not a transaction/)
  })
  expect(() => createOutbox({ db: db as never, publisher })).toThrow(/pass knexDatabase\(knex\)/)
  const elsewhere = Object.assign(() => {}, { raw() {}, client: { acquireConnection() {} } })
  expect(() => knexDatabase(elsewhere as never)).toThrow(/needs a Knex with client: 'pg'/)
})
