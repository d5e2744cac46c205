// TypeORM: what its managers can do inside a unit of work, what they may not, what subscribers do at COMMIT, and that no
// connection is lost by the pool, however a transaction ends.
import {
  DataSource,
  type EntityManager,
  EntitySchema,
  type EntitySubscriberInterface,
} from 'typeorm'
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { sql } from '../../../src/drivers/sql.ts'
import { typeormDatabase } from '../../../src/drivers/typeorm.ts'
import { createOutbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { directUrl } from '../../support/servers/database.ts'
import { useFixture } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

interface Order {
  id: number
  customer: string
}

const Orders = new EntitySchema<Order>({
  name: 'orders',
  columns: {
    id: { type: Number, primary: true, generated: true },
    customer: { type: String },
  },
})

const fixture = useFixture()
const publisher = handlersPublisher({ handlers: { OrderCompleted: () => {} } })
let source: DataSource
/** What runs between the work and COMMIT. */
let beforeCommit: (manager: EntityManager) => Promise<unknown> = async () => {}
beforeAll(async () => {
  await fixture.sql`create table orders (id serial primary key, customer text unique deferrable initially deferred)`
})
beforeEach(async () => {
  // One connection: whoever keeps it makes the next wait for ever.
  source = new DataSource({
    type: 'postgres',
    url: directUrl(fixture.url),
    poolSize: 1,
    entities: [Orders],
  })
  await source.initialize()
  const subscriber: EntitySubscriberInterface = {
    beforeTransactionCommit: ({ manager }) => beforeCommit(manager),
  }
  source.subscribers.push(subscriber)
})
afterEach(async () => {
  beforeCommit = async () => {}
  await source.destroy()
  await fixture.sql`truncate orders`
})

const open = () => createOutbox({ db: typeormDatabase(source), publisher, poller: false })
const savedTypes = async () => (await fixture.rows()).map((row) => row.event_type)
const customers = async () =>
  (await fixture.sql`select customer from orders order by id`).map(
    (row) => row['customer'] as string,
  )

async function expectUsable() {
  await open().withOutbox(async (tx, emit) => {
    await tx.query('select 1')
    emit(newEvent({ type: 'Afterwards' }))
  })
  expect(await savedTypes()).toEqual(['Afterwards'])
}

it('runs managers, repositories and query builders in the transaction, and nests them', async () => {
  await open().withOutbox(async (tx, emit) => {
    await tx.save(Orders, { customer: 'manager' })
    await tx.getRepository(Orders).save({ customer: 'repository' })
    await tx.withRepository(source.getRepository(Orders)).insert({ customer: 'another' })
    await tx.createQueryBuilder().insert().into(Orders).values({ customer: 'builder' }).execute()
    expect(await tx.queryRunner!.hasTable('orders')).toBe(true)
    const undone = tx.transaction(async (inner) => {
      await inner.save(Orders, { customer: 'undone' })
      emit(newEvent({ type: 'Undone' }))
      throw new Error('no')
    })
    await expect(undone).rejects.toThrow('no')
    await tx.transaction('SERIALIZABLE', (inner) => inner.save(Orders, { customer: 'kept' }))
    await tx
      .getRepository(Orders)
      .manager.transaction(async () => void emit(newEvent({ type: 'Kept' })))
  })
  expect(await customers()).toEqual(['manager', 'repository', 'another', 'builder', 'kept'])
  expect(await savedTypes()).toEqual(['Kept'])
})

it.each<[string, (tx: EntityManager) => unknown]>([
  ['a query', (tx) => tx.query('commit')],
  ['a query of its runner', (tx) => tx.queryRunner!.query('rollback')],
  ['a stream', (tx) => tx.queryRunner!.stream('end')],
  ['startTransaction()', (tx) => tx.queryRunner!.startTransaction()],
  ['commitTransaction()', (tx) => tx.queryRunner!.commitTransaction()],
  ['rollbackTransaction()', (tx) => tx.queryRunner!.rollbackTransaction()],
  ['release()', (tx) => tx.queryRunner!.release()],
])('refuses to end the transaction behind its back with %s, and goes on', async (_, end) => {
  await open().withOutbox(async (tx, emit) => {
    await expect(async () => await end(tx)).rejects.toMatchObject({ code: 'TRANSACTION_CONTROL' })
    emit(newEvent({ type: 'Afterwards' }))
  })
  expect(await savedTypes()).toEqual(['Afterwards'])
})

it('gives subscribers of its entities the guarded manager too', async () => {
  const outbox = open()
  let late: EntityManager | undefined
  const subscriber: EntitySubscriberInterface = {
    async afterInsert({ manager, queryRunner }) {
      late = manager
      for (const one of [manager, queryRunner]) {
        await expect(one.query('commit')).rejects.toMatchObject({ code: 'TRANSACTION_CONTROL' })
      }
      const undone = manager.transaction(async () => {
        outbox.emit(newEvent({ type: 'Undone' }))
        throw new Error('no')
      })
      await expect(undone).rejects.toThrow('no')
      await manager.query(`insert into orders (customer) values ('subscriber')`)
      outbox.emit(newEvent({ type: 'OfSubscriber' }))
    },
  }
  source.subscribers.push(subscriber)
  await outbox.withOutbox(async (tx) => {
    await tx.save(Orders, { customer: 'Ada' })
  })
  expect(await customers()).toEqual(['Ada', 'subscriber'])
  expect(await savedTypes()).toEqual(['OfSubscriber'])
  await expect(late!.query('select 1')).rejects.toMatchObject({ code: 'UNIT_OF_WORK_OVER' })
})

it('refuses what was made in time and runs too late', async () => {
  const late = await open().withOutbox(async (tx) => ({ tx, orders: tx.getRepository(Orders) }))
  const over = { code: 'UNIT_OF_WORK_OVER' }
  await expect(late.orders.find()).rejects.toMatchObject(over)
  await expect(late.orders.createQueryBuilder().getMany()).rejects.toMatchObject(over)
  await expect(late.tx.transaction(async () => {})).rejects.toMatchObject(over)
  const after = await typeormDatabase(source).begin(async ({ tx }) => tx)
  await expect(after.query('select 1')).rejects.toMatchObject(over)
})

it('fails when Postgres answers COMMIT with ROLLBACK, and publishes nothing', async () => {
  const swallowed = open().withOutbox(async (tx) => {
    await tx.query('select 1 / 0').catch(() => {})
  })
  await expect(swallowed).rejects.toMatchObject({ code: 'ROLLED_BACK' })
  // Behind the save: the events are there, and go with the rest.
  beforeCommit = (manager) => manager.query('select 1 / 0').catch(() => {})
  const behind = open().withOutbox(async (_, emit) => emit(newEvent()))
  await expect(behind).rejects.toMatchObject({ code: 'ROLLED_BACK' })
  beforeCommit = async () => {}
  expect(await fixture.rows()).toEqual([])
  await expectUsable()
})

it('refuses an event of a subscriber that runs behind the save', async () => {
  const outbox = open()
  beforeCommit = async () => outbox.emit(newEvent())
  const work = outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await expect(work).rejects.toMatchObject({ code: 'NO_UNIT_OF_WORK' })
  beforeCommit = async () => {}
  expect(await fixture.rows()).toEqual([])
})

it('gives its connection back when COMMIT is refused, and says what Postgres said', async () => {
  const refused = open().withOutbox(async (tx, emit) => {
    emit(newEvent())
    await tx.insert(Orders, [{ customer: 'Ada' }, { customer: 'Ada' }])
  })
  await expect(refused).rejects.toMatchObject({ code: '23505' })
  await expectUsable()
})

it('fails when its connection dies in a transaction, with nobody listening for it, and drops it', async () => {
  const failed = open().withOutbox(async (tx, emit) => {
    emit(newEvent())
    const [row] = await tx.query<[{ pid: number }]>('select pg_backend_pid() as pid')
    await fixture.sql`select pg_terminate_backend(${row.pid})`
    const isGone = async () => {
      try {
        await tx.query('select 1')
        return false
      } catch {
        return true
      }
    }
    await waitUntil(isGone, { message: 'the connection is gone' })
  })
  await expect(failed).rejects.toThrow(/terminat|not queryable|ECONNRESET|released/)
  await expectUsable()
})

it('begins with every setting, also those that TypeORM does not know', async () => {
  const settings = {
    isolationLevel: 'serializable',
    accessMode: 'read only',
    deferrable: true,
  } as const
  const shown = await open().withOutbox(async (tx) => {
    const show = (name: string) => tx.query<[Record<string, string>]>(`show transaction_${name}`)
    return [await show('isolation'), await show('read_only'), await show('deferrable')]
  }, settings)
  expect(shown.map(([row]) => Object.values(row)[0])).toEqual(['serializable', 'on', 'on'])
})

it('watches the transactions of outbox.db and of its manager', async () => {
  const outbox = open()
  await outbox.db.manager.transaction(async (tx) => {
    await tx.save(Orders, { customer: 'Ada' })
    outbox.emit(newEvent({ type: 'OfManager' }))
  })
  await outbox.db.transaction('SERIALIZABLE', async () =>
    outbox.emit(newEvent({ type: 'OfSource' })),
  )
  expect(await outbox.db.getRepository(Orders).find()).toMatchObject([{ customer: 'Ada' }])
  expect(await savedTypes()).toEqual(['OfManager', 'OfSource'])
})

it('sees a transaction of its own manager, by way of the source or of a repository', async () => {
  const outbox = open()
  for (const handle of [source, source.getRepository(Orders).manager]) {
    await handle.transaction(async () => {
      await expect(outbox.withOutbox(async () => {})).rejects.toMatchObject({ code: 'NESTED' })
    })
  }
})

it('saves into the transaction of a query runner with emitIn(), as long as it is open', async () => {
  const outbox = open()
  const runner = source.createQueryRunner()
  const refused = { code: 'OPTIONS_INVALID' }
  await expect(outbox.emitIn(runner, newEvent())).rejects.toMatchObject(refused)
  await runner.startTransaction()
  await outbox.emitIn(runner, newEvent({ type: 'Runner' }))
  await outbox.emitIn(runner.manager, newEvent({ type: 'Manager' }))
  await runner.startTransaction()
  await outbox.emitIn(runner, newEvent({ type: 'Undone' }))
  await runner.rollbackTransaction()
  await runner.commitTransaction()
  await expect(outbox.emitIn(runner.manager, newEvent())).rejects.toMatchObject(refused)
  await runner.release()
  await expect(outbox.emitIn(source.manager, newEvent())).rejects.toMatchObject(refused)
  expect(await savedTypes()).toEqual(['Runner', 'Manager'])
})

it('keeps what an entity holds out of the errors of its own statements', async () => {
  const gone = typeormDatabase(source).query(sql`select ${'hunter2'}::int`)
  const error: unknown = await gone.catch((thrown: unknown) => thrown)
  expect(error).not.toHaveProperty('parameters')
})

it('takes a DataSource of Postgres', () => {
  expect(() => typeormDatabase(source.manager as never)).toThrow(/takes a DataSource/)
  expect(() => createOutbox({ db: source as never, publisher })).toThrow(
    /pass typeormDatabase\(dataSource\)/,
  )
  const mysql = Object.create(source, { options: { value: { type: 'mysql' } } }) as DataSource
  expect(() => typeormDatabase(mysql)).toThrow(/needs a DataSource of type 'postgres', got 'mysql'/)
})
