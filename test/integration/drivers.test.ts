// The same path on every driver: what differs between them is how results and errors look.
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import { knex } from 'knex'
import { Kysely, type KyselyPlugin, PostgresDialect } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import { describe, expect, it } from 'vitest'
import { databaseOf } from '../../src/drivers/database-of.ts'
import { knexDatabase } from '../../src/drivers/knex.ts'
import { kyselyDatabase } from '../../src/drivers/kysely.ts'
import { nodePostgres } from '../../src/drivers/node-postgres.ts'
import { postgresJs } from '../../src/drivers/postgres-js.ts'
import { createInbox } from '../../src/inbox/inbox.ts'
import { type AnyDatabase, createOutbox } from '../../src/index.ts'
import { type HandledEvent, handlersPublisher } from '../../src/publishers/handlers.ts'
import { ALL_DRIVERS } from '../support/drivers.ts'
import { describeEach, useFixture } from '../support/fixture.ts'
import { newEvent } from '../support/doubles/sample-events.ts'
import { nextEvent } from '../support/timing/wait-until.ts'

const PAYLOAD = { text: 'é"\\😀', n: 9_007_199_254_740_991, list: [1.5, null], at: new Date(0) }
const DETAILS = { occurredAt: new Date('2020-02-29T12:34:56.789Z'), headers: { tenant: 'é' } }

/** An event by the immediate path, one that needs the fallback as well, and what came of both. */
async function sendBothWays(db: AnyDatabase) {
  const handled: HandledEvent[] = []
  const empty: unknown[] = []
  const failing = new Set(['Flaky'])
  const publisher = handlersPublisher({
    handlers: {
      Empty: (event) => void empty.push(event.payload),
      Steady: (event) => void handled.push(event),
      Flaky: (event) => {
        if (failing.delete('Flaky')) throw new Error('the first time')
        handled.push(event)
      },
    },
  })
  const outbox = createOutbox({ db, publisher, migrate: true, poller: false, backoffBase: 0 })
  await outbox.start()
  const failed = nextEvent(outbox.events, 'event:failed')
  const published = nextEvent(outbox.events, 'event:published')
  await outbox.withOutbox(async (_, emit) => {
    emit(newEvent({ type: 'Steady', payload: PAYLOAD, ...DETAILS }))
    emit(newEvent({ type: 'Flaky', payload: PAYLOAD, ...DETAILS }))
    emit(newEvent({ type: 'Empty', payload: null }))
  })
  await Promise.all([failed, published])
  await outbox.pollOnce()
  const { pending, published: settled, lagMs, latency } = await outbox.stats()
  await outbox.stop()
  const firstSeq = handled[0]!.seq
  return {
    handled: handled.map(({ type, payload, occurredAt, headers, attempts, seq }) => {
      return { type, payload, occurredAt, headers, attempts, nth: seq - firstSeq }
    }),
    empty,
    counts: [pending, settled],
    lagMs,
    latency: latency['Flaky'],
  }
}

const asEmitted = { payload: { ...PAYLOAD, at: '1970-01-01T00:00:00.000Z' }, ...DETAILS }
const ALL_OF_IT = {
  handled: [
    { type: 'Steady', ...asEmitted, attempts: 0, nth: 0 },
    { type: 'Flaky', ...asEmitted, attempts: 1, nth: 1 },
  ],
  empty: [null],
  counts: [
    { count: 0, exact: true },
    { count: 3, exact: true },
  ],
  lagMs: null,
  latency: {
    events: 1,
    medianMs: expect.any(Number) as number,
    p95Ms: expect.any(Number) as number,
    maxMs: expect.any(Number) as number,
  },
}

describeEach(ALL_DRIVERS, (fixture) => {
  const { query, nest } = fixture.driver

  it('saves, publishes, claims, renews, settles and counts', async () => {
    expect(await sendBothWays(fixture.db)).toEqual(ALL_OF_IT)
  })

  it('handles an event once, in order, in transactions of its own and in open ones', async () => {
    const { db } = fixture
    const options = { db, consumer: 'billing', retention: '1s', cleanup: false } as const
    const inbox = createInbox({ ...options, order: 'aggregate', migrate: true })
    await inbox.start()
    await fixture.sql`create table effects (what text)`
    const write = (tx: unknown, what: string) =>
      query(tx, `insert into effects values ('${what}') returning what`)
    const message = { id: 'é"\\😀', aggregateType: 'order', aggregateId: '1', seq: 2 }
    const failure = new Error('not yet')
    const failing = inbox.once(message, async (tx) => {
      await write(tx, 'undone')
      throw failure
    })
    await expect(failing).rejects.toBe(failure)

    let late: unknown
    const handled = inbox.once(message, async (tx) => {
      late = tx
      const undone = nest(tx, async (inner) => {
        await write(inner, 'undone')
        throw failure
      })
      await expect(undone).rejects.toBe(failure)
      await nest(tx, (inner) => write(inner, 'nested'))
      return await write(tx, 'first')
    })
    expect(await handled).toEqual({ outcome: 'handled', result: [{ what: 'first' }] })
    const over = { code: 'UNIT_OF_WORK_OVER' }
    await expect((async () => write(late, 'forgotten'))()).rejects.toMatchObject(over)

    const outbox = fixture.handling({})
    await outbox.withOutbox(async (tx) => {
      const again = await inbox.onceIn(tx, message, () => expect.fail('called again'))
      expect(again).toEqual({ outcome: 'duplicate' })
      const earlier = { ...message, id: 'earlier', seq: 1 }
      expect(await inbox.onceIn(tx, earlier, () => {})).toEqual({ outcome: 'late' })
      const next = { ...message, id: 'next', seq: 3 }
      const refused = inbox.onceIn(tx, next, async (inner) => {
        await write(inner, 'undone')
        outbox.emit(newEvent({ type: 'Undone' }))
        throw failure
      })
      await expect(refused).rejects.toBe(failure)
      const outcome = await inbox.onceIn(tx, next, async (inner) => {
        late = inner
        outbox.emit(newEvent({ type: 'Kept' }))
        return await write(inner, 'second')
      })
      expect(outcome).toEqual({ outcome: 'handled', result: [{ what: 'second' }] })
      await expect((async () => write(late, 'forgotten'))()).rejects.toMatchObject(over)
    })
    const { client } = databaseOf(db)
    for (const none of [db, client, {}, null]) {
      const wrong = inbox.onceIn(none, { ...message, id: 'none' }, () => expect.fail('called'))
      await expect(wrong).rejects.toMatchObject({ code: 'OPTIONS_INVALID' })
    }
    expect((await fixture.rows()).map((row) => row.event_type)).toEqual(['Kept'])
    const effects = await fixture.sql`select what from effects`
    expect(effects.map(({ what }) => what as string)).toEqual(['nested', 'first', 'second'])
    await fixture.sql`update inbox set handled_at = handled_at - interval '1 hour'`
    expect(await inbox.purge()).toBe(2)
    await inbox.stop()
  })
})

describe('whatever parsers and transforms the client has', () => {
  const fixture = useFixture()
  const shout = (text: string) => `parsed ${text}`
  // Every type that a statement of ours might answer with, except text.
  const types = [16, 20, 21, 23, 114, 700, 701, 1114, 1184, 1700, 2950, 3802]
  const custom = Object.fromEntries(
    types.map((oid) => [`t${oid}`, { to: oid, from: [oid], serialize: String, parse: shout }]),
  )

  it.each([
    ['types of its own', { types: custom }],
    ['postgres.camel', { transform: postgres.camel }],
    ['postgres.kebab', { transform: postgres.kebab }],
    ['values transformed', { transform: { value: { from: () => 'transformed' } } }],
    ['prepare: false', { prepare: false }],
    ['debug', { debug: () => {} }],
  ])('reads its rows right on postgres.js with %s', async (_, options) => {
    const client = postgres(fixture.url, { onnotice: () => {}, ...(options as object) })
    expect(await sendBothWays(postgresJs(client))).toEqual(ALL_OF_IT)
    await client.end()
  })

  it('reads its rows right on a postgres.js client that Drizzle uses as well', async () => {
    const client = postgres(fixture.url, { onnotice: () => {} })
    drizzlePostgresJs(client)
    expect(await sendBothWays(postgresJs(client))).toEqual(ALL_OF_IT)
    await client.end()
  })

  async function parsing(oids: readonly number[], parse: (text: string) => unknown) {
    const before = oids.map((oid) => pg.types.getTypeParser(oid, 'text') as () => unknown)
    const pool = new pg.Pool({ connectionString: fixture.url })
    for (const oid of oids) pg.types.setTypeParser(oid, parse)
    return {
      pool,
      async [Symbol.asyncDispose]() {
        for (const [n, oid] of oids.entries()) pg.types.setTypeParser(oid, before[n]!)
        await pool.end()
      },
    }
  }

  it('reads its rows right on node-postgres, whatever its parsers make of them', async () => {
    await using parsers = await parsing(types, shout)
    expect(await sendBothWays(nodePostgres(parsers.pool))).toEqual(ALL_OF_IT)
  })

  it('reads its rows right by way of Drizzle, whatever the parsers make of numbers', async () => {
    const boxed = (text: string) => ({ valueOf: () => text })
    await using parsers = await parsing([20, 21, 23, 700, 701], boxed)
    expect(await sendBothWays(drizzleNodePostgres(parsers.pool))).toEqual(ALL_OF_IT)
  })

  it('reads its rows right on Kysely, whatever its plugins make of them', async () => {
    const boxed = (text: string) => ({ valueOf: () => text })
    await using parsers = await parsing([20, 21, 23, 700, 701], boxed)
    const dialect = new PostgresDialect({ pool: parsers.pool })
    const emptying: KyselyPlugin = {
      transformQuery: ({ node }) => node,
      transformResult: async ({ result }) => ({ ...result, rows: result.rows.map(() => ({})) }),
    }
    const db = new Kysely({ dialect, plugins: [emptying] })
    expect(await sendBothWays(kyselyDatabase(db))).toEqual(ALL_OF_IT)
  })

  it('reads its rows right on Knex, whatever parsers and postProcessResponse make of them', async () => {
    await using _ = await parsing(types, shout)
    const postProcessResponse = () => 'processed'
    const db = knex({ client: 'pg', connection: fixture.url, postProcessResponse })
    expect(await sendBothWays(knexDatabase(db))).toEqual(ALL_OF_IT)
    await db.destroy()
  })

  it.each([
    ['renames columns', { column: { from: postgres.toPascal } }, /turns 'id' into 'Id'/],
    ['rewrites rows', { row: { from: () => ({}) } }, /transform rows where you use them/],
  ])('refuses a postgres.js client whose transform %s', async (_, transform, message) => {
    const client = postgres(fixture.url, { transform })
    const refused = { code: 'OPTIONS_INVALID', message: expect.stringMatching(message) as string }
    expect(() => postgresJs(client)).toThrow(expect.objectContaining(refused))
    const publisher = handlersPublisher({ handlers: {} })
    expect(() => createOutbox({ db: drizzlePostgresJs(client), publisher })).toThrow(
      expect.objectContaining(refused),
    )
  })
})

describe('says what to give it instead', () => {
  const publisher = handlersPublisher({ handlers: {} })
  const pool = new pg.Pool()
  const client = postgres({ max: 1 })

  it.each<[string, () => unknown, RegExp]>([
    [
      'of a postgres.js client',
      () => client,
      /pass postgresJs\(sql\) from 'aftercommit\/postgres-js'/,
    ],
    ['of a Pool', () => pool, /pass nodePostgres\(pool\) from 'aftercommit\/node-postgres'/],
    ['of nothing', () => undefined, /must be a Drizzle Postgres database, or .* postgresJs\(sql\)/],
    [
      'of Drizzle on a Client',
      () => drizzleNodePostgres(new pg.Client()),
      /single node-postgres Client/,
    ],
    [
      'of a Client',
      () => nodePostgres(new pg.Client() as never),
      /nodePostgres\(\) runs on a single/,
    ],
    ['of no Pool', () => nodePostgres({} as never), /pool must be a Pool of node-postgres/],
    [
      'of a binary Pool',
      () => nodePostgres(new pg.Pool({ binary: true } as object)),
      /binary: true/,
    ],
    [
      'of no client',
      () => postgresJs({} as never),
      /takes the client itself, from postgres\(url\)/,
    ],
  ])('when createOutbox() is made %s', (_, db, message) => {
    const create = () => createOutbox({ db: db() as never, publisher })
    expect(create).toThrow(message)
    expect(create).toThrow(expect.objectContaining({ code: 'OPTIONS_INVALID' }))
    expect(() => createInbox({ db: db() as never, consumer: 'any' })).toThrow(message)
  })
})
