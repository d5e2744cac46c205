// node-postgres without Drizzle: what its client can do inside a unit of work, what it may not, and that none is
// lost by the pool, however a transaction ends.
import pg from 'pg'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { nodePostgres, type NodePostgresTransaction } from '../../../src/drivers/node-postgres.ts'
import { createOutbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { sql } from '../../../src/drivers/sql.ts'
import { directUrl } from '../../support/servers/database.ts'
import { defer } from '../../support/timing/deferred.ts'
import { useFixture } from '../../support/fixture.ts'
import { closeGate } from '../../support/timing/gate.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { startProxy } from '../../support/servers/tcp-proxy.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
const publisher = handlersPublisher({ handlers: { OrderCompleted: () => {} } })
let pool: pg.Pool
beforeEach(() => {
  // One connection: whoever keeps it makes the next wait for ever.
  pool = new pg.Pool({ connectionString: directUrl(fixture.url), max: 1 })
})
afterEach(() => pool.end())

const open = (of = pool) => createOutbox({ db: nodePostgres(of), publisher, poller: false })

async function expectUsable(of: pg.Pool) {
  await open(of).withOutbox(async (tx, emit) => {
    await tx.query('select 1')
    emit(newEvent({ type: 'Afterwards' }))
  })
  expect((await fixture.rows()).map((row) => row.event_type)).toEqual(['Afterwards'])
  expect(of.idleCount).toBe(of.totalCount)
}

it('takes what query() of a client takes: values, configs, callbacks, rows of a type', async () => {
  const answers = await open().withOutbox(async (tx) => {
    const called = defer<number>()
    tx.query('select $1::int as n', [3], (_, result) => called.resolve(result.rows[0].n as number))
    const typed = await tx.query<{ n: number }>('select 1 as n')
    const config = await tx.query({ text: 'select $1::int', values: [2], rowMode: 'array' })
    return [typed.rows[0]!.n, config.rows[0]![0], await called.promise] as unknown[]
  })
  expect(answers).toEqual([1, 2, 3])
})

it.each<[string, (tx: NodePostgresTransaction) => unknown]>([
  ['a text', (tx) => tx.query('commit')],
  ['a config', (tx) => tx.query({ text: 'ROLLBACK' })],
  ['a prepared statement', (tx) => tx.query({ name: 'end', text: 'end', values: [] })],
  ['one of several', (tx) => tx.query('select 1; savepoint mine')],
  ['in a cursor', (tx) => tx.query({ cursor: { text: 'abort' }, submit() {} } as never)],
])('refuses to end the transaction behind its back with %s, and goes on', async (_, end) => {
  await open().withOutbox(async (tx, emit) => {
    await expect(async () => await end(tx)).rejects.toMatchObject({ code: 'TRANSACTION_CONTROL' })
    emit(newEvent({ type: 'Afterwards' }))
  })
  expect((await fixture.rows()).map((row) => row.event_type)).toEqual(['Afterwards'])
})

it('fails when Postgres answers COMMIT with ROLLBACK, and publishes nothing', async () => {
  const swallowed = open().withOutbox(async (tx) => {
    await tx.query('select 1 / 0').catch(() => {})
  })
  await expect(swallowed).rejects.toMatchObject({ code: 'ROLLED_BACK' })
  // Behind the save, where a unit of work lets nobody: the events are there, and go with the rest.
  const behind = nodePostgres(pool).begin(async (unit) => {
    await unit.query(sql`create table gone (id int)`)
    await unit.query(sql`select 1 / 0`).catch(() => {})
  })
  await expect(behind).rejects.toMatchObject({ code: 'ROLLED_BACK' })
  expect(await fixture.sql`select to_regclass('gone') as gone`).toEqual([{ gone: null }])
  await expectUsable(pool)
})

it('keeps a connection whose COMMIT was refused by a deferred constraint', async () => {
  await fixture.sql.unsafe(`create table strict (id int unique deferrable initially deferred)`)
  const connected: unknown[] = []
  pool.on('connect', (client) => connected.push(client))
  const refused = open().withOutbox(async (tx, emit) => {
    emit(newEvent())
    await tx.query('insert into strict values (1), (1)')
  })
  await expect(refused).rejects.toMatchObject({ code: '23505' })
  await expectUsable(pool)
  expect(connected).toHaveLength(1)
})

it('lets nobody use the client of a transaction that is over', async () => {
  const late = await nodePostgres(pool).begin(async ({ tx }) => tx)
  await expect(late.query('select 1')).rejects.toMatchObject({ code: 'UNIT_OF_WORK_OVER' })
  await nodePostgres(pool).begin(async (next) => {
    const savepoint = late.savepoint(async () =>
      expect.unreachable('it was opened in the next one'),
    )
    await expect(savepoint).rejects.toMatchObject({ code: 'UNIT_OF_WORK_OVER' })
    await next.query(sql`select 1`)
  })
})

it('gives the client back when BEGIN fails, so that the pool drops it', async () => {
  const url = new URL(directUrl(fixture.url))
  const proxy = await startProxy({ port: Number(url.port) })
  url.port = String(proxy.port)
  const proxied = new pg.Pool({ connectionString: url.href, max: 1 })
  proxied.on('error', () => {})
  await proxied.query('select 1')
  proxy.intercept((chunk) => (chunk.includes('begin') ? 'drop-and-cut' : 'forward'))
  const failed = open(proxied).withOutbox(async () => expect.unreachable('it did not begin'))
  await expect(failed).rejects.toThrow(/Connection terminated unexpectedly/)
  proxy.intercept(null)
  expect(proxied.totalCount).toBe(0)
  await expectUsable(proxied)
  await proxied.end()
  await proxy.stop()
})

it('publishes nothing and drops the client when nobody waits for the answer to COMMIT any longer', async () => {
  const gate = await closeGate(fixture.sql)
  const handled: string[] = []
  const handlers = { OrderCompleted: ({ id }: { id: string }) => void handled.push(id) }
  const connectionString = directUrl(fixture.url)
  const impatient = new pg.Pool({ connectionString, max: 1, query_timeout: 4_000 })
  const outbox = createOutbox({
    db: nodePostgres(impatient),
    publisher: handlersPublisher({ handlers }),
    poller: false,
  })
  await outbox.start()
  const unknown = outbox.withOutbox(async (tx, emit) => {
    await tx.query('insert into gate values (1)')
    emit(newEvent())
  })
  await expect(unknown).rejects.toThrow('Query read timeout')
  // In the pool it would stand in the way, or be in the middle of somebody else's transaction.
  expect(impatient.totalCount).toBe(0)
  await gate.open()
  await outbox.stop()
  expect(handled).toEqual([])
  await impatient.end()
})

it.each(['at rest', 'in a statement'])(
  'fails when its connection dies %s in a transaction, with nobody listening for it, and drops it',
  async (where) => {
    const failed = open().withOutbox(async (tx, emit) => {
      emit(newEvent())
      const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
      const underWay = where === 'at rest' ? [] : [tx.query('select pg_sleep(60)')]
      const terminated = fixture.sql`select pg_terminate_backend(${rows[0]!.pid})`
      await Promise.all([terminated, ...underWay])
      const isGone = () => tx.query('select 1').then(...answering(false, true))
      return await waitUntil(isGone, { message: 'the connection is gone' })
    })
    await expect(failed).rejects.toThrow(/terminat|not queryable|ECONNRESET/)
    expect(pool.totalCount).toBe(0)
    await expectUsable(pool)
  },
)

const answering = (fulfilled: boolean, rejected: boolean) =>
  [() => fulfilled, () => rejected] as const
