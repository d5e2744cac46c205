// Postgres crashes, fails over or vanishes under a running outbox. The loops outlive it without help, and
// what was committed is delivered.
import type postgres from 'postgres'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { createOutbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { connect } from '../../support/servers/database.ts'
import {
  drizzleOnNodePostgres,
  drizzleOnPostgresJs,
  onNodePostgres,
  onPostgresJs,
  type TestDriver,
} from '../../support/drivers.ts'
import { useFixture } from '../../support/fixture.ts'
import { type PostgresServer, startPostgres } from '../../support/servers/postgres-server.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { startProxy } from '../../support/servers/tcp-proxy.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.stop())

// postgres.js 3.4.9 throws past everybody when a connection dies with a transaction open on it
// (porsager/postgres#1208), which Drizzle lets happen; and a write that is on its way when its socket closes blocks
// that connection for good, reconnected or not. So there the application pauses while Postgres is away.
it.each<['writes on' | 'pauses', string, TestDriver]>([
  ['pauses', drizzleOnPostgresJs.name, drizzleOnPostgresJs],
  ['writes on', drizzleOnNodePostgres.name, drizzleOnNodePostgres],
  ['pauses', onPostgresJs.name, onPostgresJs],
  ['writes on', onNodePostgres.name, onNodePostgres],
])(
  'delivers what was committed, in order, over three crashes of Postgres (the application %s, %s)',
  async (meanwhile, name, driver) => {
    const { db, close } = driver.open(server.url)
    const table = name.replaceAll(/\W/g, '_')
    const seen = new Map<number, number>()
    const logger = recordingLogger()
    const outbox = createOutbox({
      db,
      table,
      migrate: true,
      logger,
      publisher: handlersPublisher({
        handlers: {
          OrderCompleted: ({ payload }) => {
            seen.set(payload as number, (seen.get(payload as number) ?? 0) + 1)
          },
        },
      }),
      threshold: '1s',
      publishTimeout: '900ms',
      pollInterval: '200ms',
    })
    await outbox.start()
    const committed: number[] = []
    let next = 0
    const writeUntil = async (enough: () => boolean) => {
      while (!enough()) {
        const n = (next += 1)
        const saved = outbox.withOutbox(async (_, emit) => {
          emit(newEvent({ aggregateId: 'one', payload: n }))
        })
        // A failure is the application's own business; it goes on with the next.
        await saved.then(() => committed.push(n)).catch(() => new Promise(setImmediate))
      }
    }
    for (let crash = 0; crash < 3; crash += 1) {
      const enough = committed.length + 50
      await writeUntil(() => committed.length >= enough)
      let isBack = false
      const writing = meanwhile === 'writes on' ? writeUntil(() => isBack) : null
      await server.kill()
      await server.start()
      isBack = true
      await writing
    }
    // Behind whatever committed without an answer, so that it is not seen before that is.
    const enough = committed.length + 1
    await writeUntil(() => committed.length >= enough)
    await waitUntil(() => committed.every((n) => seen.has(n)), {
      message: () => `all were delivered, not ${seen.size} of ${committed.length}`,
    })
    await outbox.stop()
    const rows = await connectOnce(
      server.url,
      (sql) => sql`select payload::text::int as n, status from ${sql(table)} order by seq`,
    )
    await close()
    expect(rows.every(({ status }) => status === 'published')).toBe(true)
    // A unit of work whose COMMIT got no answer may have committed; nothing else was ever delivered.
    expect([...seen.keys()]).toEqual(rows.map(({ n }) => n))
    // A database that is away is told of once in a while, not once per try.
    expect(logger.lines.filter(({ level }) => level === 'error').length).toBeLessThan(20)
  },
)

async function connectOnce<T>(url: string, run: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const connection = connect(url)
  return await run(connection.client).finally(() => connection.close())
}

it('goes on by itself after a fail-over to a server that at first takes no writes', async () => {
  const name = new URL(fixture.url).pathname.slice(1)
  // What a client sees of it: its connections end, and new ones are read-only until the promotion.
  const failOver = (readOnly: 'on' | 'off') =>
    connectOnce(inject('databaseUrl'), async (sql) => {
      await sql.unsafe(`alter database "${name}" set default_transaction_read_only = ${readOnly}`)
      await sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`
    })
  const handled: unknown[] = []
  const { db, close } = drizzleOnPostgresJs.open(fixture.url)
  const outbox = fixture.handling(
    { OrderCompleted: ({ payload }) => void handled.push(payload) },
    { db, poller: true, pollInterval: '50ms' },
  )
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ payload: 1 })))
  await waitUntil(() => handled.length === 1, { message: 'it works before' })

  await failOver('on')
  const refusal = await waitUntil(
    () =>
      outbox
        .withOutbox(async (_, emit) => emit(newEvent({ payload: 2 })))
        .then(
          () => null,
          ({ message }: Error) => /read-only/.exec(message),
        ),
    { message: 'a unit of work is refused' },
  )
  expect(refusal).not.toBeNull()
  await failOver('off')
  await waitUntil(
    () =>
      outbox
        .withOutbox(async (_, emit) => emit(newEvent({ payload: 3 })))
        .then(
          () => true,
          () => false,
        ),
    { message: 'a unit of work commits again' },
  )
  await waitUntil(() => handled.includes(3), { message: 'it works after' })
  expect(handled).toEqual([1, 3])
  await outbox.stop()
  await close()
})

it('does not wait for ever on a connection whose other end is gone', async () => {
  const proxy = await startProxy({ port: Number(new URL(fixture.url).port) })
  const url = new URL(fixture.url)
  url.port = String(proxy.port)
  const { db, close } = drizzleOnNodePostgres.open(url.href)
  const handled: unknown[] = []
  const outbox = createOutbox({
    db,
    publisher: handlersPublisher({
      handlers: { OrderCompleted: ({ payload }) => void handled.push(payload) },
    }),
    threshold: '1s',
    publishTimeout: '900ms',
    pollInterval: '20ms',
  })
  await outbox.start()
  const gone = nextEvent(outbox.events, 'error', ({ step }) => step === 'poll')
  proxy.halfOpen()
  const unwell = outbox.health()
  expect((await gone).error).toMatchObject({ code: 'STORE_TIMEOUT' })
  expect((await unwell).flags).toMatchObject([
    { flag: 'database', message: expect.stringContaining('did not respond within 5s') },
  ])
  await proxy.accept()
  await fixture.handling({}).withOutbox(async (_, emit) => emit(newEvent({ payload: 'saved' })))
  await waitUntil(() => handled.length === 1, { message: 'the poller is at work again' })
  await outbox.stop()
  await proxy.stop()
  await close()
})
