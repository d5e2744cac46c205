// postgres.js without Drizzle: what its own transaction can do inside a unit of work, what it may not, and that a
// connection that dies ends the unit of work and not the process.
import postgres, { type TransactionSql } from 'postgres'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { postgresJs } from '../../../src/drivers/postgres-js.ts'
import { createOutbox, type Outbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { directUrl } from '../../support/servers/database.ts'
import { defer } from '../../support/timing/deferred.ts'
import { useFixture } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
const handled: string[] = []
let client: postgres.Sql
let outbox: Outbox<ReturnType<typeof postgresJs>>
beforeAll(async () => {
  client = postgres(directUrl(fixture.url), {
    max: 2,
    onnotice: () => {},
    fetch_types: false,
    backoff: () => 0,
  })
  const publisher = handlersPublisher({
    handlers: { OrderCompleted: ({ id }) => void handled.push(id) },
  })
  outbox = createOutbox({ db: postgresJs(client), publisher, poller: false })
  await fixture.sql`create table orders (id int primary key, notes jsonb)`
  await outbox.start()
})
afterAll(async () => {
  await outbox.stop()
  await client.end({ timeout: 0 })
})

it('has everything that a transaction of postgres.js has', async () => {
  const rows = await outbox.withOutbox(async (tx) => {
    const order = { id: 1, notes: tx.json({ b: 1 }) }
    await tx`insert into orders ${tx(order, 'id', 'notes')}`
    await tx.unsafe('insert into orders (id) values ($1)', [2])
    const first = tx`where id = ${1}`
    await tx.savepoint('named', async (inner) => await inner`update orders set id = 3 ${first}`)
    return await tx`select id from ${tx('orders')} order by id`
  })
  expect([...rows]).toEqual([{ id: 2 }, { id: 3 }])
  expect(rows.count).toBe(2)
})

it('sends a list of queries that the callback answers, as sql.begin() does', async () => {
  const both = (tx: TransactionSql) => [tx`select 1 as n`, tx`select 2 as n`]
  const answers = [[{ n: 1 }], [{ n: 2 }]]
  expect(await outbox.withOutbox(both)).toMatchObject(answers)
  await outbox.withOutbox(async (tx) => {
    expect(await outbox.withOutbox(both)).toMatchObject(answers)
    expect(await tx.savepoint(both)).toMatchObject(answers)
  })
})

it.each<[string, (tx: TransactionSql) => PromiseLike<unknown>]>([
  ['a template', (tx) => tx`commit`],
  ['a text', (tx) => tx.unsafe('rollback')],
  ['one of several', (tx) => tx.unsafe('select 1; commit')],
  ['two phases', (tx) => tx.prepare('later')],
])('refuses to end the transaction behind its back with %s, and goes on', async (_, end) => {
  const id = await outbox.withOutbox(async (tx, emit) => {
    await expect(end(tx)).rejects.toMatchObject({ code: 'TRANSACTION_CONTROL' })
    return emit(newEvent())
  })
  expect(await fixture.rows()).toMatchObject([{ id }])
})

it('does not send a query that was made in a unit of work and is awaited after its end', async () => {
  const saving = defer()
  const tooLate = defer<unknown>()
  const id = await outbox.withOutbox(async (tx, emit) => {
    // Behind the save it would turn COMMIT into a rollback that nobody hears of.
    const query = tx`select 1 / 0`
    void saving.promise.then(async () => {
      tooLate.resolve(await query.catch((error: unknown) => error))
    })
    queueMicrotask(() => setImmediate(saving.resolve))
    return emit(newEvent())
  })
  expect(await tooLate.promise).toMatchObject({ code: 'UNIT_OF_WORK_OVER' })
  await waitUntil(() => handled.includes(id), { message: 'the event was published' })
  expect(await fixture.rows()).toMatchObject([{ id }])
})

it('lets nobody use a transaction that is over', async () => {
  const late = await postgresJs(client).begin(async ({ tx }) => tx)
  await expect(late`select 1`).rejects.toMatchObject({ code: 'UNIT_OF_WORK_OVER' })
})

it('does not take a failure of the work for one of its own connection', async () => {
  const elsewhere = Object.assign(new Error('elsewhere'), { errno: -111, code: 'ECONNREFUSED' })
  const fail = () => Promise.reject(elsewhere)
  const id = await outbox.withOutbox(async (tx, emit) => {
    await expect(tx.savepoint(fail)).rejects.toBe(elsewhere)
    await tx`select 1`
    return emit(newEvent())
  })
  expect(await fixture.rows()).toMatchObject([{ id }])
  await expect(outbox.withOutbox(fail)).rejects.toBe(elsewhere)
})

const terminate = (pid: number) => fixture.sql`select pg_terminate_backend(${pid})`

/** What becomes of the unit of work, for what goes on inside it. */
type Lost = Promise<unknown>

// What postgres.js would throw past everybody ends the process, which a test runner reports as its own failure.
it.each<[string, (tx: TransactionSql, pid: number, lost: Lost) => Promise<unknown>]>([
  [
    'in a statement',
    async (tx, pid) => {
      const underWay = tx`select pg_sleep(60)`.execute()
      await terminate(pid)
      return await underWay
    },
  ],
  [
    'in a statement, and the work goes on',
    async (tx, pid) => {
      const underWay = tx`select pg_sleep(60)`.execute()
      await terminate(pid)
      await underWay.catch(() => {})
      const next = tx.savepoint(async () => expect.unreachable('there is no connection'))
      await expect(next).rejects.toThrow(/CONNECTION_CLOSED/)
    },
  ],
  [
    'at rest, and the work goes on',
    async (tx, pid, lost) => {
      await terminate(pid)
      await lost
      await expect(tx`select 1`).rejects.toThrow(/CONNECTION_CLOSED/)
    },
  ],
  [
    'in a savepoint',
    async (tx, pid, lost) => {
      const nested = tx.savepoint(async () => {
        await terminate(pid)
        await lost
        throw new Error('the work has noticed')
      })
      // Whoever waits for the savepoint is told, too.
      await expect(nested).rejects.toThrow('the work has noticed')
    },
  ],
])('fails alone when its connection dies %s', async (_, work) => {
  handled.length = 0
  const [lost, settled] = [defer(), defer()]
  const failed = outbox.withOutbox(async (tx, emit) => {
    emit(newEvent())
    const [row] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`
    await work(tx, row!.pid, lost.promise).finally(settled.resolve)
  })
  await expect(failed).rejects.toThrow(/CONNECTION_CLOSED|terminating|ECONNRESET/)
  lost.resolve()
  await settled.promise
  // postgres.js blames the end of a connection once more on the first statement of the next one.
  const next = () => outbox.withOutbox(async (__, emit) => emit(newEvent())).catch(() => null)
  const id = await waitUntil(next, { message: 'the next one commits' })
  await waitUntil(() => handled.length > 0, { message: 'the next one was published' })
  expect(await fixture.rows()).toMatchObject([{ id }])
  expect(handled).toEqual([id])
})
