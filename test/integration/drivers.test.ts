// The same path on every Drizzle driver: what differs between them is how results and errors look.
import { PGlite } from '@electric-sql/pglite'
import { sql } from 'drizzle-orm'
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import pg from 'pg'
import postgres from 'postgres'
import { describe, expect, it } from 'vitest'
import { createInbox } from '../../src/inbox/inbox.ts'
import { createOutbox, type DrizzleDatabase } from '../../src/index.ts'
import { type HandledEvent, handlersPublisher } from '../../src/publishers/handlers.ts'
import type { Executor } from '../../src/store/database.ts'
import { createDatabase } from '../support/database.ts'
import { newEvent } from '../support/sample-events.ts'
import { nextEvent } from '../support/wait-until.ts'

type Opened = { db: DrizzleDatabase; close: () => Promise<void> }

const drivers: Record<string, () => Promise<Opened>> = {
  async 'postgres-js'() {
    const database = await createDatabase()
    const client = postgres(database.url, { onnotice: () => {} })
    const close = () => client.end().then(() => database.drop())
    return { db: drizzlePostgresJs(client), close }
  },
  async 'node-postgres'() {
    const database = await createDatabase()
    const pool = new pg.Pool({ connectionString: database.url })
    // end() resolves before the last sockets are closed, and dropping the database ends those.
    pool.on('error', () => {})
    const close = () => pool.end().then(() => database.drop())
    return { db: drizzleNodePostgres(pool), close }
  },
  async pglite() {
    const client = new PGlite()
    return { db: drizzlePglite(client), close: () => client.close() }
  },
}

describe.each(Object.entries(drivers))('on %s', (_, open) => {
  it('saves, publishes, claims, renews and settles', async () => {
    const { db, close } = await open()
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
    const payload = { text: 'é"\\😀', n: 9_007_199_254_740_991, list: [1.5, null], at: new Date(0) }
    const occurredAt = new Date('2020-02-29T12:34:56.789Z')
    await outbox.withOutbox(async (tx, emit) => {
      await (tx as typeof db).execute(sql`select 1`)
      emit(newEvent({ type: 'Steady', payload, occurredAt, headers: { tenant: 'é' } }))
      emit(newEvent({ type: 'Flaky', payload, occurredAt, headers: { tenant: 'é' } }))
      emit(newEvent({ type: 'Empty', payload: null }))
    })
    await Promise.all([failed, published])
    expect(await outbox.pollOnce()).toBe(1)
    await outbox.stop()
    await close()

    // Both paths hand on the same event.
    const [first, second] = handled
    expect([first?.type, second?.type]).toEqual(['Steady', 'Flaky'])
    for (const event of handled) {
      expect(event.payload).toEqual({ ...payload, at: '1970-01-01T00:00:00.000Z' })
      expect(event).toMatchObject({ occurredAt, headers: { tenant: 'é' } })
    }
    expect([first?.seq, second?.seq]).toEqual([1, 2])
    expect(empty).toEqual([null])
  })

  it('rolls back with the error that the work threw, and leaks no payload when saving fails', async () => {
    const { db, close } = await open()
    const outbox = createOutbox({ db, publisher: handlersPublisher({ handlers: {} }) })
    const failure = new Error('the business said no')
    await expect(
      outbox.withOutbox(async (__, emit) => {
        emit(newEvent())
        throw failure
      }),
    ).rejects.toBe(failure)
    const saving = outbox.withOutbox(async (__, emit) => emit(newEvent({ payload: 'hunter2' })))
    await expect(saving).rejects.toMatchObject({
      code: 'TABLE_MISSING',
      message: expect.not.stringContaining('hunter2') as string,
    })
    await close()
  })

  it('handles an event once, in order, in transactions of its own and in open ones', async () => {
    const { db, close } = await open()
    const options = { db, consumer: 'billing', retention: '1s', cleanup: false } as const
    const inbox = createInbox({ ...options, order: 'aggregate', migrate: true })
    await inbox.start()
    const message = { id: 'é"\\😀', aggregateType: 'order', aggregateId: '1', seq: 2 }
    const failure = new Error('not yet')
    const failing = inbox.once(message, () => Promise.reject(failure))
    await expect(failing).rejects.toBe(failure)
    expect(await inbox.once(message, (tx: Executor) => tx.execute(sql`select 1`))).toMatchObject({
      outcome: 'handled',
    })
    await db.transaction(async (tx) => {
      const again = await inbox.onceIn(tx, message, () => expect.fail('called again'))
      expect(again).toEqual({ outcome: 'duplicate' })
      const earlier = { ...message, id: 'earlier', seq: 1 }
      expect(await inbox.onceIn(tx, earlier, () => {})).toEqual({ outcome: 'late' })
      const next = { ...message, id: 'next', seq: 3 }
      expect(await inbox.onceIn(tx, next, () => 3)).toEqual({ outcome: 'handled', result: 3 })
    })
    await db.execute(sql`update inbox set handled_at = handled_at - interval '1 hour'`)
    expect(await inbox.purge()).toBe(2)
    await inbox.stop()
    await close()
  })
})

it('refuses a single node-postgres Client, which transactions would share with the background', () => {
  const db = drizzleNodePostgres(new pg.Client())
  const publisher = handlersPublisher({ handlers: {} })
  expect(() => createOutbox({ db, publisher })).toThrow(/give Drizzle a Pool/)
  expect(() => createInbox({ db, consumer: 'any' })).toThrow(/give Drizzle a Pool/)
})
