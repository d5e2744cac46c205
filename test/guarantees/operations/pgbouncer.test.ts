// Behind PgBouncer in transaction mode: every statement outside a transaction, and every transaction, may run
// in another session than the one before. The whole path with far more clients than there are sessions.
import postgres from 'postgres'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest'
import { groupBy } from '../../../src/runtime/group-by.ts'
import { createInbox } from '../../../src/inbox/inbox.ts'
import {
  type AnyDatabase,
  createOutbox,
  type Outbox,
  type OutboxOptions,
} from '../../../src/index.ts'
import {
  type HandledEvent,
  type Handler,
  handlersPublisher,
} from '../../../src/publishers/handlers.ts'
import { blockedHandler } from '../../support/timing/blocked-handler.ts'
import { createDatabase, type TestDatabase } from '../../support/servers/database.ts'
import { CLIENT_DRIVERS, type OpenedDatabase } from '../../support/drivers.ts'
import { WATCHABLE } from '../../support/fixture.ts'
import { type PgBouncer, startPgBouncer } from '../../support/servers/pgbouncer.ts'
import { holdSessions, readPool, whileHeld } from '../../support/servers/pooled-sessions.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { MIGRATION_NAMES } from '../../support/migration-names.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const SESSIONS = 3
const INSTANCES = 4
/** Without prepared statements, as docs/operations.md asks of postgres.js. */
const SETTINGS = { max: 5, prepare: false }

type Opened = OpenedDatabase<AnyDatabase>
type Options = Partial<OutboxOptions>

const skipped = describe.skipIf(inject('pgbouncerMissing') !== null)

skipped.each(CLIENT_DRIVERS)('behind PgBouncer, on $name', (driver) => {
  let database: TestDatabase
  let bouncer: PgBouncer
  let url: string
  let instances: Opened[]
  /** Past PgBouncer, to look and to prepare. */
  let direct: postgres.Sql
  const outboxes: Outbox[] = []

  beforeAll(async () => {
    database = await createDatabase()
    bouncer = await startPgBouncer(inject('directDatabaseUrl'), SESSIONS)
    const directUrl = new URL(inject('directDatabaseUrl'))
    directUrl.pathname = `/${database.name}`
    url = bouncer.pooled(directUrl.href)
    direct = postgres(directUrl.href, { onnotice: () => {} })
    instances = Array.from({ length: INSTANCES }, () => driver.open(url, SETTINGS))
    // Far more than there are sessions, all at once.
    const racing = instances.flatMap(({ db }) => Array.from({ length: 3 }, () => create(db, {})))
    await Promise.all(racing.map((outbox) => outbox.migrate()))
  })
  afterEach(async () => {
    await Promise.all(outboxes.splice(0).map((outbox) => outbox.stop()))
    await direct`truncate outbox`
  })
  afterAll(async () => {
    await Promise.all(instances.map(({ close }) => close()))
    await direct.end()
    await bouncer.stop()
    await database.drop()
  })

  function create(db: AnyDatabase, handlers: Record<string, Handler>, options: Options = {}) {
    const publisher = handlersPublisher({ handlers })
    const unhurried = { threshold: '30s', poller: false } as const
    const outbox = createOutbox({ db, publisher, ...unhurried, ...options })
    outboxes.push(outbox)
    return outbox
  }

  const createEach = (handlers: Record<string, Handler>, options: Options = {}) =>
    instances.map(({ db }) => create(db, handlers, options))
  const countByStatus = async () => {
    const rows = await direct`select status, count(*)::int from outbox group by 1`
    return Object.fromEntries(rows.map((row) => [row['status'], row['count']])) as unknown
  }

  it('migrates from many at once', async () => {
    // All of them did, before the first test.
    const applied = await direct`select name from outbox_migrations order by name`
    expect(applied.map(({ name }) => name as string)).toEqual(MIGRATION_NAMES)
  })

  it('keeps order, savepoints and lockKeys with far more clients than sessions', async () => {
    const handled: HandledEvent[] = []
    const handlers = {
      Kept: (event: HandledEvent) => void handled.push(event),
      Dropped: (event: HandledEvent) => void handled.push(event),
    }
    const running = createEach(handlers, { lockKeys: true, poller: true, pollInterval: '200ms' })
    await Promise.all(running.map((outbox) => outbox.start()))
    const units = Array.from({ length: 100 }, (__, n) =>
      running[n % INSTANCES]!.withOutbox(async (tx, emit) => {
        const aggregateId = `order ${n % 7}`
        emit(newEvent({ type: 'Kept', aggregateId }))
        const refused = driver.nest(tx, async () => {
          emit(newEvent({ type: 'Dropped', aggregateId }))
          throw new Error('refused')
        })
        await expect(refused).rejects.toThrow('refused')
        emit(newEvent({ type: 'Kept', aggregateId }))
      }),
    )
    await Promise.all(units)
    await waitUntil(
      async () => (await direct`select 1 from outbox where status = 'pending'`).length === 0,
      {
        message: 'everything is published',
      },
    )

    const { clients, sessions, mode } = await readPool(bouncer, database.name)
    expect(mode).toBe('transaction')
    expect(clients).toBeGreaterThan(SESSIONS * 2)
    expect(sessions).toBeLessThanOrEqual(SESSIONS)
    expect(handled).toHaveLength(200)
    expect(new Set(handled.map(({ id }) => id)).size).toBe(200)
    expect(handled.filter(({ type }) => type === 'Dropped')).toEqual([])
    for (const events of groupBy(handled, ({ aggregateId }) => aggregateId).values()) {
      const order = events.map(({ seq }) => seq)
      expect(order).toEqual(order.toSorted((a, b) => a - b))
    }
    // Rounds of the fallback have to wait for a session as everybody else does.
    expect(await running[0]!.health({ maxPoll: '10m' })).toMatchObject({ ok: true, flags: [] })
    expect(await running[1]!.stats()).toMatchObject({ published: { count: 200, exact: true } })
  })

  it('gives each row to one of several pollers', async () => {
    const [saver, ...pollers] = createEach({ OrderCompleted: () => {} }, { batchSize: 50 })
    await saver!.withOutbox(async (__, emit) => {
      emit(Array.from({ length: 600 }, () => newEvent()))
    })
    const claimed: string[] = []
    for (const poller of pollers) {
      poller.events.on('batch:claimed', ({ events }) => claimed.push(...events.map(({ id }) => id)))
    }
    const shares = pollers.map(() => 0)
    await waitUntil(
      async () => {
        const counts = await Promise.all(pollers.map((poller) => poller.pollOnce()))
        for (const [n, count] of counts.entries()) shares[n]! += count
        return counts.every((count) => count === 0)
      },
      { message: 'nothing is left to claim' },
    )
    expect(claimed).toHaveLength(600)
    expect(new Set(claimed).size).toBe(600)
    expect(Math.min(...shares)).toBeGreaterThan(0)
    expect(await countByStatus()).toEqual({ published: 600 })
  })

  it('renews the lease of a send that is slower than the threshold', async () => {
    const { handler, started, release, handled } = blockedHandler()
    const [holder, other] = createEach({ OrderCompleted: handler }, WATCHABLE)
    await holder!.start()
    await holder!.withOutbox(async (__, emit) => emit(newEvent()))
    await started
    await waitUntil(
      async () => {
        const over = direct`
          select 1 from outbox where created_at + interval '2 s' <= clock_timestamp()`
        return (await over).length === 1
      },
      { message: 'the lease of birth would be over' },
    )
    expect(await other!.pollOnce()).toBe(0)
    release()
    await waitUntil(async () => handled.length === 1, { message: 'it was sent once' })
  })

  it('sets dead letters aside, and retries them from another instance', async () => {
    let broken = true
    const handler = () => {
      if (broken) throw new Error('not yet')
    }
    const [saver, a, b] = createEach({ OrderCompleted: handler }, { maxAttempts: 1 })
    await saver!.withOutbox(async (__, emit) => emit([newEvent(), newEvent()]))
    expect(await a!.pollOnce()).toBe(2)
    expect(await countByStatus()).toEqual({ dead_letter: 2 })
    expect(await b!.deadLetters.list()).toMatchObject([
      { error: expect.stringMatching(/not yet/) },
      { error: expect.stringMatching(/not yet/) },
    ])
    broken = false
    expect(await b!.deadLetters.retry({ all: true })).toBe(2)
    expect(await a!.pollOnce()).toBe(2)
    expect(await countByStatus()).toEqual({ published: 2 })
  })

  it('groups what failed, and retries or discards a group from another instance', async () => {
    let broken = true
    const handler = ({ aggregateId }: HandledEvent) => {
      if (broken) throw new Error(`order ${aggregateId} has no address`)
    }
    const [saver, a, b] = createEach({ Refused: handler, Late: handler }, { maxAttempts: 1 })
    const late = { type: 'Late', maxAttempts: 9 }
    await saver!.withOutbox(async (__, emit) =>
      emit([
        newEvent({ type: 'Refused', aggregateId: '1' }),
        newEvent({ type: 'Refused', aggregateId: '2' }),
        newEvent({ ...late, aggregateId: '3' }),
      ]),
    )
    expect(await a!.pollOnce()).toBe(3)
    const groups = await b!.failures.groups()
    const error = expect.stringContaining('order <number> has no address') as string
    expect(groups).toMatchObject([
      { status: 'dead_letter', type: 'Refused', count: 2, error },
      { status: 'failed', type: 'Late', count: 1, error },
    ])
    expect(await b!.failures.discard(groups[1]!)).toBe(1)
    broken = false
    expect(await a!.failures.retry(groups[0]!)).toBe(2)
    expect(await b!.pollOnce()).toBe(2)
    expect(await countByStatus()).toEqual({ published: 2 })
    expect(await a!.failures.groups()).toEqual([])
  })

  it('cleans up from any instance, whichever session did so before', async () => {
    const cleaners = createEach({ OrderCompleted: () => {} }, { retention: '1s' })
    const age = async () => direct`update outbox set published_at = now() - interval '1 h',
      id = overlay(id::text placing '01900000-0000' from 1 for 13)::uuid`
    for (const [n, cleaner] of cleaners.entries()) {
      await cleaner.withOutbox(async (__, emit) => emit(newEvent()))
      expect(await cleaner.pollOnce()).toBe(1)
      await age()
      const held = await holdSessions(url, SESSIONS)
      const [free] = held.splice(n % SESSIONS, 1)
      await free!.release()
      expect(await whileHeld(held, () => cleaner.purge())).toBe(1)
    }
    expect(await countByStatus()).toEqual({})
  })

  it('handles each event once, and in order, in whichever session', async () => {
    const options = { consumer: 'billing', order: 'aggregate', cleanup: false } as const
    const inboxes = instances.map(({ db }) => createInbox({ db, retention: '1s', ...options }))
    await Promise.all(inboxes.map((inbox) => inbox.migrate()))
    await direct`create table effects (n int generated always as identity, aggregate text, seq int)`
    const seqs = Array.from({ length: 20 }, (__, n) => n + 1)
    const outcomes: string[] = []
    const deliverAll = async (inbox: (typeof inboxes)[number]) => {
      for (const seq of seqs) {
        for (const aggregateId of ['a', 'b', 'c']) {
          const message = { id: `${aggregateId}${seq}`, aggregateType: 'order', aggregateId, seq }
          const effect = `insert into effects (aggregate, seq) values ('${aggregateId}', ${seq})`
          const { outcome } = await inbox.once(message, (tx) => driver.query(tx, effect))
          outcomes.push(outcome)
        }
      }
    }
    await Promise.all([...inboxes, ...inboxes].map(deliverAll))
    expect(outcomes.filter((outcome) => outcome === 'handled')).toHaveLength(seqs.length * 3)
    expect(outcomes).not.toContain('late')
    for (const aggregate of ['a', 'b', 'c']) {
      const rows = await direct`select seq from effects where aggregate = ${aggregate} order by n`
      expect(rows.map((row) => row['seq'] as number)).toEqual(seqs)
    }
    await direct`update inbox set handled_at = handled_at - interval '1 hour'`
    expect(await inboxes[0]!.purge()).toBe(seqs.length * 3)
  })

  it('leaves nothing behind in the sessions that it shares', async () => {
    const [outbox] = createEach({ OrderCompleted: () => {} }, { lockKeys: true })
    await outbox!.start()
    const inbox = createInbox({ db: instances[0]!.db, consumer: 'billing', order: 'aggregate' })
    const message = { id: 'last', aggregateType: 'order', aggregateId: '1', seq: 1 }
    await outbox!.withOutbox(async (tx, emit) => {
      await inbox.onceIn(tx, message, () => {})
      emit(newEvent())
    })
    await inbox.once(message, () => {})
    await outbox!.stop()
    const sessions = await holdSessions(url, SESSIONS)
    await Promise.all(sessions.map((session) => session.release()))
    expect(new Set(sessions.map(({ pid }) => pid)).size).toBe(SESSIONS)
    const nothing = { prepared: 0, listening: 0, searchPath: '"$user", public' }
    expect(sessions.map(({ leftovers }) => leftovers)).toEqual(sessions.map(() => nothing))
    const locks = await direct`select 1 from pg_locks l join pg_database d on d.oid = l.database
      where d.datname = current_database() and l.locktype = 'advisory'`
    expect(locks).toHaveLength(0)
  })

  it('is tested where a session is lent to others, so that whoever relies on one is noticed', async () => {
    const relying = postgres(url, { prepare: false, max: 1 })
    const [set] = await relying`
      select pg_backend_pid() as pid, set_config('test.mark', 'mine', false) as mark`
    const sessions = await holdSessions(url, SESSIONS)
    const [lent, others] = [
      sessions.filter(({ pid }) => pid === set!['pid']),
      sessions.filter(({ pid }) => pid !== set!['pid']),
    ]
    await Promise.all(others.map((session) => session.release()))
    const [got] = await whileHeld(lent, async () => {
      return relying`select pg_backend_pid() as pid, current_setting('test.mark', true) as mark`
    })
    await relying.end()
    expect(set!['mark']).toBe('mine')
    expect(lent).toHaveLength(1)
    expect(got!['pid']).not.toBe(set!['pid'])
    expect(got!['mark']).not.toBe('mine')
  })
})
