// What is particular to Drizzle: builders that run when they are awaited, and connections that die in its transactions.
import { eq, relations, sql } from 'drizzle-orm'
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres'
import { integer, pgTable } from 'drizzle-orm/pg-core'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createOutbox } from '../../../src/index.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { useFixture } from '../../support/fixture.ts'
import { directUrl } from '../../support/servers/database.ts'
import { defer } from '../../support/timing/deferred.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
const items = pgTable('items', { id: integer().primaryKey(), other: integer() })
const schema = { items, itemRelations: relations(items, () => ({})) }

beforeAll(async () => {
  await fixture.sql`create table items (id int primary key, other int)`
})

describe.each(['postgres-js', 'node-postgres'] as const)('Drizzle on %s', (driver) => {
  // Without the query for array types, which rejects unhandled where a connection is closed while it opens.
  const settings = { onnotice: () => {}, backoff: () => 0, fetch_types: false }
  const client = () => postgres(directUrl(fixture.url), settings)
  const openDb = () => {
    if (driver === 'postgres-js') {
      const own = client()
      closing.push(() => own.end({ timeout: 0 }))
      return drizzlePostgresJs(own, { schema })
    }
    const pool = new pg.Pool({ connectionString: directUrl(fixture.url) })
    // The pool alone has a listener, as its documentation asks for.
    pool.on('error', () => {})
    closing.push(() => pool.end())
    return drizzleNodePostgres(pool, { schema }) as unknown as ReturnType<
      typeof drizzlePostgresJs<typeof schema>
    >
  }
  const closing: (() => Promise<unknown>)[] = []
  afterAll(async () => {
    for (const close of closing) await close()
  })

  function open() {
    const handled: unknown[] = []
    const publisher = scriptedPublisher((event) => {
      handled.push(event.id)
      return acked(event)
    })
    const outbox = createOutbox({ db: openDb(), publisher, poller: false })
    closing.unshift(() => outbox.stop())
    return { outbox, handled }
  }

  it.each<[string, (tx: ReturnType<typeof openDb>) => PromiseLike<unknown>]>([
    ['an insert', (tx) => tx.insert(items).values({ id: 1 })],
    ['a raw statement', (tx) => tx.execute(sql`select 1 / 0`)],
    ['a relational query', (tx) => tx.query.items.findMany()],
    [
      'a prepared query',
      (tx) => tx.select().from(items).where(eq(items.id, 1)).prepare('p').execute(),
    ],
  ])(
    'does not run %s that was made in a unit of work and is awaited behind its end',
    async (_, make) => {
      const { outbox, handled } = open()
      await outbox.start()
      await fixture.sql`insert into items values (1) on conflict do nothing`
      const saving = defer()
      const tooLate = defer<unknown>()
      const isPrepared = _ === 'a prepared query'
      const id = await outbox.withOutbox(async (tx, emit) => {
        // Behind the save it would turn COMMIT into a rollback that reports success.
        const made = isPrepared ? null : make(tx as never)
        void saving.promise.then(async () => {
          tooLate.resolve(
            await Promise.resolve(made ?? make(tx as never)).catch((error: unknown) => error),
          )
        })
        queueMicrotask(() => setImmediate(saving.resolve))
        return emit(newEvent())
      })
      expect(await tooLate.promise).toMatchObject({ code: 'UNIT_OF_WORK_OVER' })
      await waitUntil(() => handled.includes(id), { message: 'the event was published' })
      expect(await fixture.rows()).toMatchObject([{ id }])
    },
  )

  it('runs builders, relational queries and nested transactions as ever', async () => {
    const { outbox } = open()
    await outbox.withOutbox(async (tx) => {
      await tx.delete(items)
      await tx.insert(items).values([{ id: 1 }, { id: 2 }])
      await tx.transaction(async (inner) => {
        await inner.update(items).set({ other: 5 }).where(eq(items.id, 2))
      })
      expect(await tx.query.items.findMany({ orderBy: items.id })).toEqual([
        { id: 1, other: null },
        { id: 2, other: 5 },
      ])
      expect(await tx.$count(items)).toBe(2)
      expect(await tx.select().from(items).where(eq(items.id, 1))).toHaveLength(1)
      expect(() => tx.rollback()).toThrow(/[Rr]ollback/)
    })
  })

  // What the client throws past every caller ends the process, which a test runner reports as its own failure.
  it.each<
    [
      string,
      (
        tx: ReturnType<typeof openDb>,
        kill: () => Promise<unknown>,
        lost: Promise<unknown>,
      ) => Promise<unknown>,
    ]
  >([
    [
      'in a statement',
      async (tx, kill) => {
        const underWay = tx
          .execute(sql`select pg_sleep(60)`)
          .then(String, (error: unknown) => error)
        await kill()
        throw await underWay
      },
    ],
    [
      'in a statement, and the work goes on',
      async (tx, kill) => {
        const underWay = tx
          .execute(sql`select pg_sleep(60)`)
          .then(String, (error: unknown) => error)
        await kill()
        await underWay
        await Promise.resolve(tx.execute(sql`select 1`)).catch(() => {})
      },
    ],
    [
      'at rest',
      async (tx, kill) => {
        await kill()
        await tx.execute(sql`select 1`)
      },
    ],
    [
      'in a nested transaction',
      async (tx, kill) => {
        await tx.transaction(async (inner) => {
          await kill()
          await inner.execute(sql`select 1`)
        })
      },
    ],
  ])('fails alone when its connection dies %s', async (_, work) => {
    const { outbox, handled } = open()
    await outbox.start()
    const failed = outbox.withOutbox(async (tx, emit) => {
      emit(newEvent())
      const [row] = await tx
        .select({ pid: sql<number>`pg_backend_pid()` })
        .from(sql`(select 1) one`)
      const kill = async () => {
        await fixture.sql`select pg_terminate_backend(${row!.pid})`
        await waitUntil(
          async () =>
            (await fixture.sql`select 1 from pg_stat_activity where pid = ${row!.pid}`).length ===
            0,
          { message: 'the connection is gone' },
        )
      }
      await work(tx as never, kill, Promise.resolve())
    })
    await expect(failed).rejects.toThrow(/connection|terminat|ECONNRESET|Failed query/i)
    const next = () => outbox.withOutbox(async (__, emit) => emit(newEvent())).catch(() => null)
    const id = await waitUntil(next, { message: 'the next one commits' })
    await waitUntil(() => handled.length > 0, { message: 'the next one was published' })
    expect(handled).toEqual([id])
  })

  it('is refused as a transaction', async () => {
    const db = openDb()
    const publisher = scriptedPublisher(acked)
    await db.transaction(async (tx) => {
      expect(() => createOutbox({ db: tx, publisher })).toThrow(/db is a transaction/)
    })
  })
})
