// Kysely: what its transactions can do inside a unit of work, what they may not, and that its plugins and schemas keep
// their meaning there.
import {
  CamelCasePlugin,
  CompiledQuery,
  type Generated,
  Kysely,
  type KyselyPlugin,
  PostgresDialect,
  sql as template,
  type Transaction,
} from 'kysely'
import pg from 'pg'
import Cursor from 'pg-cursor'
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { sql } from '../../../src/drivers/sql.ts'
import { kyselyDatabase } from '../../../src/drivers/kysely.ts'
import { createOutbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { directUrl } from '../../support/servers/database.ts'
import { useFixture } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'

interface Tables {
  orders: { id: Generated<number>; customerName: string }
}

const fixture = useFixture()
const publisher = handlersPublisher({ handlers: { OrderCompleted: () => {} } })
let pool: pg.Pool
let db: Kysely<Tables>
beforeAll(async () => {
  await fixture.sql.unsafe(`create schema shop;
    create table shop.orders (id serial primary key, customer_name text unique deferrable initially deferred)`)
})
beforeEach(() => {
  // One connection: whoever keeps it makes the next wait for ever.
  pool = new pg.Pool({ connectionString: directUrl(fixture.url), max: 1 })
  const dialect = new PostgresDialect({ pool, cursor: Cursor })
  db = new Kysely<Tables>({ dialect, plugins: [new CamelCasePlugin()] })
})
afterEach(async () => {
  await fixture.sql`truncate shop.orders`
  await db.destroy()
})

const open = () => createOutbox({ db: kyselyDatabase(db), publisher, poller: false })
const savedTypes = async () => (await fixture.rows()).map((row) => row.event_type)

it('runs builders, templates and streams in the transaction, with plugins and a schema', async () => {
  const outbox = open()
  await outbox.withOutbox(async (tx, emit) => {
    const shop = tx.withSchema('shop')
    const inserted = shop.insertInto('orders').values({ customerName: 'Ada' })
    const { customerName } = await inserted.returning('customerName').executeTakeFirstOrThrow()
    const streamed: string[] = []
    for await (const row of shop.selectFrom('orders').selectAll().stream(1))
      streamed.push(row.customerName)
    const { rows } = await template<{ anyName: number }>`select 1 as any_name`.execute(tx)
    expect([customerName, streamed, rows]).toEqual(['Ada', ['Ada'], [{ anyName: 1 }]])
    await shop.savepoint(async (inner) => {
      await inner.insertInto('orders').values({ customerName: 'kept' }).execute()
    })
    const plain = tx.withoutPlugins().withPlugin(new CamelCasePlugin()).withSchema('shop')
    const undone = plain.savepoint(async (inner) => {
      await inner.deleteFrom('orders').execute()
      emit(newEvent({ type: 'Undone' }))
      throw new Error('no')
    })
    await expect(undone).rejects.toThrow('no')
    expect((await tx.introspection.getSchemas()).length).toBeGreaterThan(0)
    emit(newEvent({ type: 'Kept' }))
  })
  expect(await savedTypes()).toEqual(['Kept'])
  expect(await fixture.sql`select customer_name from shop.orders`).toHaveLength(2)
})

it('keeps plugins and schema in transactions on outbox.db', async () => {
  const outbox = open()
  const shop = outbox.db.withSchema('shop')
  await shop
    .transaction()
    .setAccessMode('read write')
    .execute(async (tx) => {
      await tx.insertInto('orders').values({ customerName: 'Ada' }).execute()
      outbox.emit(newEvent({ type: 'Watched' }))
    })
  expect(await shop.selectFrom('orders').select('customerName').execute()).toEqual([
    { customerName: 'Ada' },
  ])
  expect(await savedTypes()).toEqual(['Watched'])
})

it.each<[string, (tx: Transaction<Tables>) => unknown]>([
  ['a template', (tx) => template`commit`.execute(tx)],
  ['a compiled query', (tx) => tx.executeQuery(CompiledQuery.raw('ROLLBACK'))],
  ['a query in a stream', (tx) => tx.getExecutor().stream(CompiledQuery.raw('end'), 1).next()],
  [
    'its connection',
    (tx) =>
      tx.getExecutor().provideConnection((one) => one.executeQuery(CompiledQuery.raw('abort'))),
  ],
  ['a transaction that it controls', async (tx) => tx.startTransaction()],
])('refuses to end the transaction behind its back with %s, and goes on', async (_, end) => {
  await open().withOutbox(async (tx, emit) => {
    await expect(async () => await end(tx)).rejects.toMatchObject({ code: 'TRANSACTION_CONTROL' })
    emit(newEvent({ type: 'Afterwards' }))
  })
  expect(await savedTypes()).toEqual(['Afterwards'])
})

it('refuses builders and streams that were made in time and run too late', async () => {
  const late = await open().withOutbox(async (tx) => ({
    builder: tx.withSchema('shop').selectFrom('orders').selectAll(),
    tx,
  }))
  const over = { code: 'UNIT_OF_WORK_OVER' }
  await expect(late.builder.execute()).rejects.toMatchObject(over)
  await expect(late.builder.stream(1).next()).rejects.toMatchObject(over)
  await expect(late.tx.savepoint(async () => {})).rejects.toMatchObject(over)
})

it('lets nobody use a transaction that is over', async () => {
  const late = await kyselyDatabase(db).begin(async ({ tx }) => tx)
  const over = { code: 'UNIT_OF_WORK_OVER' }
  await expect(template`select 1`.execute(late)).rejects.toMatchObject(over)
  await kyselyDatabase(db).begin(async (next) => {
    const savepoint = late.savepoint(() => expect.unreachable('it was opened in the next one'))
    await expect(savepoint).rejects.toMatchObject(over)
    await next.query(sql`select 1`)
  })
})

it('refuses a controlled transaction on outbox.db', () => {
  expect(() => open().db.startTransaction()).toThrow(/transaction\(\)\.execute\(\).*emitIn/)
})

it('saves into a controlled transaction with emitIn(), as long as it is open', async () => {
  const outbox = open()
  const tx = await db.startTransaction().execute()
  const inSavepoint = await tx.savepoint('mine').execute()
  await outbox.emitIn(tx, newEvent({ type: 'Kept' }))
  await inSavepoint.releaseSavepoint('mine').execute()
  await tx.commit().execute()
  await expect(outbox.emitIn(tx, newEvent())).rejects.toMatchObject({ code: 'OPTIONS_INVALID' })
  expect(await savedTypes()).toEqual(['Kept'])
})

it('gives its connection back when COMMIT is refused, and says what Postgres said', async () => {
  const refused = open().withOutbox(async (tx, emit) => {
    emit(newEvent())
    const twice = [{ customerName: 'Ada' }, { customerName: 'Ada' }]
    await tx.withSchema('shop').insertInto('orders').values(twice).execute()
  })
  await expect(refused).rejects.toMatchObject({ code: '23505' })
  await open().withOutbox(async (_, emit) => emit(newEvent({ type: 'Afterwards' })))
  expect(await savedTypes()).toEqual(['Afterwards'])
})

it('begins with the settings that Kysely does not know', async () => {
  const { rows } = await open().withOutbox(
    (tx) => template<{ transactionDeferrable: string }>`show transaction_deferrable`.execute(tx),
    { isolationLevel: 'serializable', accessMode: 'read only', deferrable: true },
  )
  expect(rows).toEqual([{ transactionDeferrable: 'on' }])
})

it('sees a transaction on its own handle, whatever was set on the builder', async () => {
  const outbox = open()
  const plugin: KyselyPlugin = new CamelCasePlugin()
  await db
    .transaction()
    .setAccessMode('read write')
    .setIsolationLevel('repeatable read')
    .execute(async (tx) => {
      await expect(outbox.withOutbox(async () => {})).rejects.toMatchObject({ code: 'NESTED' })
      await outbox.emitIn(tx.withPlugin(plugin), newEvent({ type: 'Own' }))
    })
  expect(await savedTypes()).toEqual(['Own'])
})

it('takes a database, not a transaction', async () => {
  await db.transaction().execute(async (tx) => {
    expect(() => kyselyDatabase(tx as never)).toThrow(/takes the database itself/)
  })
  expect(() => createOutbox({ db: db as never, publisher })).toThrow(/pass kyselyDatabase\(db\)/)
})
