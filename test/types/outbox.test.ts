// The public types, checked by tsc as part of `npm run check`; vitest runs this file for its form only.
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import type { PgliteDatabase } from 'drizzle-orm/pglite'
import type { PostgresJsDatabase, PostgresJsTransaction } from 'drizzle-orm/postgres-js'
import { expectTypeOf, it } from 'vitest'
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
