// Prisma: what its interactive transactions can do inside a unit of work, what they may not, what its limits do to one, and
// that no connection is lost by the pool, however a transaction ends.
import { PrismaPg } from '@prisma/adapter-pg'
import { setImmediate } from 'node:timers/promises'
import pg from 'pg'
import { afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import {
  prismaDatabase,
  type PrismaLimits,
  type PrismaTransactionOf,
} from '../../../src/drivers/prisma.ts'
import { createOutbox, type Outbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { rolledBack } from '../../../src/testing/testing.ts'
import { Prisma, PrismaClient } from '../../support/prisma/generated/client.ts'
import { directUrl } from '../../support/servers/database.ts'
import { useFixture } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

type Transaction = PrismaTransactionOf<PrismaClient>

const fixture = useFixture()
const publisher = handlersPublisher({ handlers: { OrderCompleted: () => {} } })
let pool: pg.Pool
let prisma: PrismaClient
beforeAll(async () => {
  await fixture.sql`create table orders (id serial primary key, customer text unique deferrable initially deferred)`
})
beforeEach(() => {
  // One connection: whoever keeps it makes the next wait for ever.
  pool = new pg.Pool({ connectionString: directUrl(fixture.url), max: 1 })
  prisma = new PrismaClient({ adapter: new PrismaPg(pool) })
})
afterEach(async () => {
  await prisma.$disconnect()
  await pool.end()
  await fixture.sql`truncate orders`
})

const open = (limits: PrismaLimits = { timeout: 30_000 }) =>
  createOutbox({ db: prismaDatabase(prisma, limits), publisher, poller: false })
const savedTypes = async () => (await fixture.rows()).map((row) => row.event_type)
const customers = async () =>
  (await fixture.sql`select customer from orders order by id`).map(
    (row) => row['customer'] as string,
  )

async function expectUsable() {
  await open().withOutbox(async (tx, emit) => {
    await tx.order.count()
    emit(newEvent({ type: 'Afterwards' }))
  })
  expect(await savedTypes()).toEqual(['Afterwards'])
}

it('runs models and raw queries in the transaction, and nests them', async () => {
  await open().withOutbox(async (tx, emit) => {
    const { id } = await tx.order.create({ data: { customer: 'model' } })
    await tx.$executeRaw`insert into orders (customer) values (${'template'})`
    await tx.$executeRaw(Prisma.sql`insert into orders (customer) values (${'sql'})`)
    await tx.$executeRawUnsafe('insert into orders (customer) values ($1)', 'unsafe')
    expect(await tx.$queryRaw`select customer from orders where id = ${id}`).toEqual([
      { customer: 'model' },
    ])
    const undone = tx.$transaction(async (inner) => {
      await inner.order.create({ data: { customer: 'undone' } })
      emit(newEvent({ type: 'Undone' }))
      throw new Error('no')
    })
    await expect(undone).rejects.toThrow('no')
    const [kept, all] = await tx.$transaction([
      tx.order.create({ data: { customer: 'kept' } }),
      tx.order.count(),
    ])
    expect([kept.customer, all]).toEqual(['kept', 5])
    emit(newEvent({ type: 'Kept' }))
  })
  expect(await customers()).toEqual(['model', 'template', 'sql', 'unsafe', 'kept'])
  expect(await savedTypes()).toEqual(['Kept'])
})

it.each<[string, (tx: Transaction) => unknown]>([
  ['a text', (tx) => tx.$queryRawUnsafe('commit')],
  ['a template', (tx) => tx.$executeRaw`rollback`],
  ['Prisma.sql', (tx) => tx.$queryRaw(Prisma.sql`end`)],
  ['one of several', (tx) => tx.$executeRawUnsafe('select 1; savepoint mine')],
])('refuses to end the transaction behind its back with %s, and goes on', async (_, end) => {
  await open().withOutbox(async (tx, emit) => {
    await expect(async () => await end(tx)).rejects.toMatchObject({ code: 'TRANSACTION_CONTROL' })
    emit(newEvent({ type: 'Afterwards' }))
  })
  expect(await savedTypes()).toEqual(['Afterwards'])
})

it('refuses what was made in time and runs too late, and catches it where it is caught', async () => {
  const late = await open().withOutbox(async (tx) => ({ tx, query: tx.order.findMany() }))
  const over = { code: 'UNIT_OF_WORK_OVER' }
  await expect((async () => await late.query)()).rejects.toMatchObject(over)
  expect(await late.query.catch((error: unknown) => error)).toMatchObject(over)
  await expect((async () => await late.tx.order.findMany())()).rejects.toMatchObject(over)
  await expect(late.tx.$transaction(async () => {})).rejects.toMatchObject(over)
  const after = await prismaDatabase(prisma).begin(async ({ tx }) => tx)
  await expect((async () => await after.order.count())()).rejects.toMatchObject(over)
})

it('publishes nothing of a unit of work that Prisma ended after its timeout', async () => {
  const work = open({ timeout: '100ms' }).withOutbox(async (tx, emit) => {
    emit(newEvent())
    await tx.order.create({ data: { customer: 'Ada' } })
    await waitUntil(async () => tx.order.count().then(...answering(false, true)), {
      message: 'Prisma ended the transaction',
    })
  })
  await expect(work).rejects.toThrow(/expired transaction|already closed/)
  const outbox = open()
  const watched = outbox.db.$transaction(
    async (tx) => {
      outbox.emit(newEvent())
      await waitUntil(async () => tx.order.count().then(...answering(false, true)), {
        message: 'Prisma ended the transaction',
      })
    },
    { timeout: 100 },
  )
  await expect(watched).rejects.toThrow(/expired transaction|already closed/)
  expect(await fixture.rows()).toEqual([])
  expect(await customers()).toEqual([])
  await expectUsable()
})

it('publishes nothing when COMMIT is refused, and gives its connection back', async () => {
  const refused = open().withOutbox(async (tx, emit) => {
    emit(newEvent())
    await tx.order.createMany({ data: [{ customer: 'Ada' }, { customer: 'Ada' }] })
  })
  await expect(refused).rejects.toThrow(/orders_customer_key|Unique constraint|UniqueConstraint/)
  expect(await fixture.rows()).toEqual([])
  await expectUsable()
})

it('publishes nothing when an operation of several statements was not awaited, and its last one fails', async () => {
  const twice = prisma.$extends({
    query: {
      order: {
        async create({ args, query }) {
          await query(args)
          return await query(args)
        },
      },
    },
  })
  const outbox = createOutbox({ db: prismaDatabase(twice), publisher, poller: false })
  const failed = vi.fn<(error: unknown) => void>()
  const work = outbox.withOutbox(async (tx, emit) => {
    emit(newEvent())
    void tx.order.create({ data: { id: 1, customer: 'Ada' } }).catch(failed)
  })
  await expect(work).rejects.toMatchObject({ code: 'ROLLED_BACK' })
  expect(failed).toHaveBeenCalledOnce()
  expect(await fixture.rows()).toEqual([])
  await expectUsable()
})

it('saves behind an operation that was not awaited and is behind an asynchronous hook', async () => {
  const slow = prisma.$extends({
    query: {
      order: {
        async create({ args, query }) {
          await setImmediate()
          return await query(args)
        },
      },
    },
    model: {
      order: {
        async place(customer: string) {
          await setImmediate()
          return await Prisma.getExtensionContext(this).create({ data: { customer } })
        },
      },
    },
  })
  const outbox = createOutbox({ db: prismaDatabase(slow), publisher, poller: false })
  const done: string[] = []
  const note = ({ customer }: { customer: string }) => void done.push(customer)
  await outbox.withOutbox(async (tx, emit) => {
    emit(newEvent())
    void tx.order.create({ data: { customer: 'hook' } }).then(note)
    void tx.order.place('method').then(note)
    await tx.$transaction(async (inner) => {
      void inner.order.create({ data: { customer: 'nested' } }).then(note)
    })
    expect(done).toContain('nested')
  })
  expect(done.toSorted()).toEqual(['hook', 'method', 'nested'])
  expect((await customers()).toSorted()).toEqual(['hook', 'method', 'nested'])
  expect(await fixture.rows()).toHaveLength(1)
})

it('ends with the timeout of Prisma although an operation in flight never does', async () => {
  const hangs = prisma.$extends({
    query: { order: { count: () => new Promise<never>(() => {}) } },
  })
  const outbox = createOutbox({
    db: prismaDatabase(hangs, { timeout: 1_500 }),
    publisher,
    poller: false,
  })
  const unit = outbox.withOutbox(async (tx, emit) => {
    emit(newEvent())
    tx.order.count().catch(() => {})
  })
  await expect(unit).rejects.toThrow(/expired transaction/)
  expect(await savedTypes()).toEqual([])
})

it('runs inside rolledBack() what an extension does with the outbox in one operation', async () => {
  const delivers = prisma.$extends({
    model: {
      order: {
        async place() {
          await outbox.withOutbox(async (_, emit) => emit(newEvent()))
          return await outbox.flush({ timeout: '30s' })
        },
      },
    },
  })
  let outbox!: Pick<Outbox, 'withOutbox' | 'flush'>
  const database = prismaDatabase(delivers, { timeout: 60_000 })
  const flushed = await rolledBack(database, async (db, tx) => {
    outbox = createOutbox({ db, publisher, poller: false })
    return await tx.order.place()
  })
  expect(flushed).toMatchObject({ ok: true })
})

it('undoes with a savepoint all of an operation that was begun in it and not awaited', async () => {
  const slow = prisma.$extends({
    query: {
      order: {
        async create({ args, query }) {
          await setImmediate()
          return await query(args)
        },
      },
    },
  })
  const outbox = createOutbox({ db: prismaDatabase(slow), publisher, poller: false })
  await outbox.withOutbox(async (tx, emit) => {
    emit(newEvent())
    const undone = tx.$transaction(async (inner) => {
      void inner.order.create({ data: { customer: 'undone' } }).then(() => {})
      throw new Error('no')
    })
    await expect(undone).rejects.toThrow('no')
  })
  expect(await customers()).toEqual([])
  expect(await fixture.rows()).toHaveLength(1)
})

it('nests in a hook of an operation, which does not wait for itself', async () => {
  const nesting = prisma.$extends({
    query: {
      order: {
        async create({ args, query }) {
          await outbox.withOutbox(
            async (tx, emit) => {
              emit(newEvent({ type: 'Nested' }))
              await tx.order.count()
            },
            { nested: 'savepoint' },
          )
          return await query(args)
        },
      },
    },
  })
  const outbox = createOutbox({ db: prismaDatabase(nesting), publisher, poller: false })
  await outbox.withOutbox(async (tx) => {
    await tx.order.create({ data: { customer: 'Ada' } })
  })
  expect(await savedTypes()).toEqual(['Nested'])
})

it('passes on how a method of an extension ended', async () => {
  const failing = prisma.$extends({
    model: {
      order: {
        async refuse() {
          throw new Error('refused')
        },
      },
    },
  })
  const outbox = createOutbox({ db: prismaDatabase(failing), publisher, poller: false })
  await outbox.withOutbox(async (tx, emit) => {
    emit(newEvent())
    await expect(tx.order.refuse()).rejects.toThrow('refused')
    const caught = vi.fn<(error: unknown) => void>()
    await tx.order.refuse().catch(caught)
    expect(caught).toHaveBeenCalledOnce()
  })
  expect(await fixture.rows()).toHaveLength(1)
})

it('fails when its connection dies in a transaction, and drops it', async () => {
  pool.on('error', () => {})
  const failed = open().withOutbox(async (tx, emit) => {
    emit(newEvent())
    const [row] = await tx.$queryRaw<[{ pid: number }]>`select pg_backend_pid() as pid`
    await fixture.sql`select pg_terminate_backend(${row.pid})`
    await waitUntil(async () => tx.order.count().then(...answering(false, true)), {
      message: 'the connection is gone',
    })
  })
  await expect(failed).rejects.toThrow(/onnection|terminat|closed/)
  expect(await fixture.rows()).toEqual([])
  await expectUsable()
})

it('begins with every setting, also those that Prisma does not know', async () => {
  const settings = {
    isolationLevel: 'serializable',
    accessMode: 'read only',
    deferrable: true,
  } as const
  const shown = await open().withOutbox(async (tx) => {
    const show = (name: string) =>
      tx.$queryRawUnsafe<[Record<string, string>]>(`show transaction_${name}`)
    return [await show('isolation'), await show('read_only'), await show('deferrable')]
  }, settings)
  expect(shown.map(([row]) => Object.values(row)[0])).toEqual(['serializable', 'on', 'on'])
})

it('watches interactive transactions on outbox.db, with their level, and leaves lists alone', async () => {
  const outbox = open()
  const level = await outbox.db.$transaction(
    async (tx) => {
      outbox.emit(newEvent({ type: 'Watched' }))
      return await tx.$queryRaw`show transaction_isolation`
    },
    { isolationLevel: 'RepeatableRead' },
  )
  expect(level).toEqual([{ transaction_isolation: 'repeatable read' }])
  const [created] = await outbox.db.$transaction([
    prisma.order.create({ data: { customer: 'Ada' } }),
  ])
  expect(await outbox.db.order.findMany()).toEqual([created])
  expect(await savedTypes()).toEqual(['Watched'])
})

it('runs on a client with extensions', async () => {
  const extended = prisma.$extends({
    model: { order: { place: (customer: string) => prisma.order.create({ data: { customer } }) } },
    result: {
      order: { loud: { needs: { customer: true }, compute: (o) => o.customer.toUpperCase() } },
    },
  })
  const outbox = createOutbox({ db: prismaDatabase(extended), publisher, poller: false })
  const loud = await outbox.withOutbox(async (tx, emit) => {
    emit(newEvent({ type: 'Extended' }))
    const order = await tx.order.create({ data: { customer: 'Ada' } })
    return order.loud
  })
  expect(loud).toBe('ADA')
  await extended.$transaction(async () => {
    await expect(outbox.withOutbox(async () => {})).rejects.toMatchObject({ code: 'NESTED' })
  })
  expect(await savedTypes()).toEqual(['Extended'])
})

it('takes a client, not a transaction', async () => {
  await prisma.$transaction(async (tx) => {
    expect(() => prismaDatabase(tx as never)).toThrow(/takes a PrismaClient/)
  })
  expect(() => createOutbox({ db: prisma as never, publisher })).toThrow(
    /pass prismaDatabase\(prisma\)/,
  )
})

it.each([
  [{ timout: '15s' }, "did you mean 'timeout'?"],
  [{ timeout: '15' }, "timeout must be a duration such as '7s'"],
  [{ maxWait: 0 }, 'maxWait must be at least 1ms'],
  ['15s', 'takes an object with options'],
])('refuses limits that Prisma would ignore or take for something else: %o', (limits, message) => {
  expect(() => prismaDatabase(prisma, limits as never)).toThrow(message)
})

const answering = (fulfilled: boolean, rejected: boolean) =>
  [() => fulfilled, () => rejected] as const
