// The public types, checked by tsc as part of `npm run check`; vitest runs this file for its form only.
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import type { PgliteDatabase } from 'drizzle-orm/pglite'
import type { PostgresJsDatabase, PostgresJsTransaction } from 'drizzle-orm/postgres-js'
import { expectTypeOf, it } from 'vitest'
import type { nodePostgres, NodePostgresTransaction } from '../../src/drivers/node-postgres.ts'
import type { postgresJs } from '../../src/drivers/postgres-js.ts'
import type { PoolClient } from 'pg'
import type { ReservedSql, Sql, TransactionSql } from 'postgres'
import type { DrizzleDatabase, NewEvent, Outbox, OutboxOptions } from '../../src/index.ts'

type Schema = Record<string, never>

it('takes every Drizzle Postgres database', () => {
  expectTypeOf<PostgresJsDatabase>().toExtend<DrizzleDatabase>()
  expectTypeOf<NodePgDatabase>().toExtend<DrizzleDatabase>()
  expectTypeOf<PgliteDatabase>().toExtend<DrizzleDatabase>()
})

it("hands the database's own transaction to the unit of work, and its result back", () => {
  const check = (outbox: Outbox<PostgresJsDatabase<Schema>>) => {
    const result = outbox.withOutbox(async (tx, emit) => {
      expectTypeOf(tx).toHaveProperty('insert')
      expectTypeOf<typeof tx>().toExtend<Pick<PostgresJsTransaction<Schema, Schema>, 'rollback'>>()
      expectTypeOf(emit({} as NewEvent)).toEqualTypeOf<string>()
      expectTypeOf(emit([] as NewEvent[])).toEqualTypeOf<string[]>()
      return { id: 7 }
    })
    expectTypeOf(result).toEqualTypeOf<Promise<{ id: number }>>()
  }
  expectTypeOf(check).toBeFunction()
})

it('knows which durations and events make sense', () => {
  expectTypeOf<'7s'>().toExtend<NonNullable<OutboxOptions['threshold']>>()
  expectTypeOf<'7 seconds'>().not.toExtend<NonNullable<OutboxOptions['threshold']>>()
  expectTypeOf<Omit<NewEvent, 'aggregateId'>>().not.toExtend<NewEvent>()
})

it('types the signals of lifecycle events', () => {
  const check = (outbox: Outbox) => {
    outbox.events.on('event:published', ({ path, latencyMs }) => {
      expectTypeOf(path).toEqualTypeOf<'immediate' | 'fallback'>()
      expectTypeOf(latencyMs).toEqualTypeOf<number | null>()
    })
    // @ts-expect-error there is no such event
    outbox.events.on('event:publish', () => {})
  }
  expectTypeOf(check).toBeFunction()
})

it('hands back the handle that it was given, watched', () => {
  expectTypeOf<Outbox<PostgresJsDatabase<Schema>>['db']>().toEqualTypeOf<
    PostgresJsDatabase<Schema>
  >()
  type OnPostgresJs = Outbox<ReturnType<typeof postgresJs<Record<string, never>>>>
  expectTypeOf<OnPostgresJs['db']>().toEqualTypeOf<Sql<Record<string, never>>>()
  expectTypeOf<Outbox<ReturnType<typeof nodePostgres>>['db']>().toEqualTypeOf<never>()
})

it("takes the client's own transactions in emitIn()", () => {
  const check = async (
    drizzle: Outbox<PostgresJsDatabase<Schema>>,
    js: Outbox<ReturnType<typeof postgresJs<Record<string, never>>>>,
    pg: Outbox<ReturnType<typeof nodePostgres>>,
    event: NewEvent,
  ) => {
    const tx = {} as PostgresJsTransaction<Schema, Schema>
    expectTypeOf(drizzle.emitIn(tx as never, event)).toEqualTypeOf<Promise<string>>()
    await js.emitIn({} as TransactionSql<Record<string, never>>, [event])
    await js.emitIn({} as ReservedSql<Record<string, never>>, event)
    await pg.emitIn({} as PoolClient, event)
    await pg.emitIn({} as NodePostgresTransaction, event)
    // A transaction of another client on the same database.
    await js.emitIn({} as PoolClient, event)
    // @ts-expect-error no transaction of any client
    await js.emitIn({ begin: () => {} }, event)
  }
  expectTypeOf(check).toBeFunction()
})

it('can be stood in for by a plain object', () => {
  const emitted: NewEvent[] = []
  const stand: Pick<Outbox, 'emit' | 'deadLetters'> = {
    emit: ((event: NewEvent) => String(emitted.push(event))) as Outbox['emit'],
    deadLetters: { list: async () => [], retry: async () => 0, discard: async () => 0 },
  }
  const whole: Outbox = {
    ...stand,
    failures: {
      groups: async () => [],
      count: async () => ({ count: 0, exact: true }),
      retry: async () => 0,
      discard: async () => 0,
    },
    scheduled: { cancel: async () => true, cancelIn: async () => true },
    browse: {
      list: async () => ({ events: [], next: null }),
      show: async () => null,
      tail: () => ({ begin: async () => {}, next: async () => [] }),
    },
    db: {} as Outbox['db'],
    events: { on: () => whole.events, once: () => whole.events, off: () => whole.events },
    withOutbox: async (work) => work({}, stand.emit),
    emitIn: (async () => '1') as unknown as Outbox['emitIn'],
    migrate: async () => {},
    start: async () => {},
    stop: async () => {},
    stopOnSignals: () => () => {},
    flush: async () => ({ ok: true, delivered: [], failed: [], left: [], untracked: 0 }),
    drain: async () => ({ delivered: 0, failed: 0, dead: 0, timedOut: false }),
    pollOnce: async () => 0,
    pause: async () => true,
    resume: async () => true,
    reroute: async () => ({ moved: 0, held: 0 }),
    redact: async () => ({ redacted: 0, left: 0 }),
    pauses: async () => [],
    instances: async () => [],
    purge: async () => 0,
    stats: () => Promise.reject(new Error('none')),
    activity: () => [],
    health: async () => ({ ok: true, flags: [], stats: null }),
    [Symbol.asyncDispose]: async () => {},
  }
  expectTypeOf(whole).toExtend<Outbox>()
})
