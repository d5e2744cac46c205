// What a unit of work gets from each driver, checked by tsc as part of `npm run check`; vitest runs this file for its
// form only.
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import type { Pool, QueryResult } from 'pg'
import type { Sql, TransactionSql } from 'postgres'
import { expectTypeOf, it } from 'vitest'
import { nodePostgres, type NodePostgresTransaction } from '../../src/drivers/node-postgres.ts'
import { postgresJs } from '../../src/drivers/postgres-js.ts'
import { createOutbox, type Publisher, type TransactionOf } from '../../src/index.ts'

const publisher = {} as Publisher

it('hands on the transaction of postgres.js, with the types of its client', () => {
  const check = (sql: Sql<{ big: bigint }>) => {
    const outbox = createOutbox({ db: postgresJs(sql), publisher })
    const result = outbox.withOutbox(async (tx) => {
      expectTypeOf(tx).toEqualTypeOf<TransactionSql<{ big: bigint }>>()
      const [order] = await tx<{ id: number }[]>`select 1 as id`
      return order?.id
    })
    expectTypeOf(result).toEqualTypeOf<Promise<number | undefined>>()
  }
  expectTypeOf(check).toBeFunction()
})

it('hands on a client of node-postgres that can nest', () => {
  const check = (pool: Pool) => {
    const outbox = createOutbox({ db: nodePostgres(pool), publisher })
    const result = outbox.withOutbox(async (tx, emit) => {
      expectTypeOf(tx).toEqualTypeOf<NodePostgresTransaction>()
      expectTypeOf(tx.query<{ id: number }>('select 1 as id')).toEqualTypeOf<
        Promise<QueryResult<{ id: number }>>
      >()
      expectTypeOf(tx.savepoint(async (inner) => inner)).toEqualTypeOf<
        Promise<NodePostgresTransaction>
      >()
      // @ts-expect-error an event has a type
      emit({ aggregateType: 'order', aggregateId: '1', payload: 1 })
      return 7
    })
    expectTypeOf(result).toEqualTypeOf<Promise<number>>()
  }
  expectTypeOf(check).toBeFunction()
})

it('takes a client only by way of its driver', () => {
  const check = (sql: Sql, pool: Pool) => {
    // @ts-expect-error it takes postgresJs(sql)
    createOutbox({ db: sql, publisher })
    // @ts-expect-error it takes nodePostgres(pool)
    createOutbox({ db: pool, publisher })
    // @ts-expect-error a pool is not a postgres.js client
    postgresJs(pool)
  }
  expectTypeOf(check).toBeFunction()
})

it('names the transaction of a database for functions that are handed one', () => {
  type OfPostgresJs = TransactionOf<ReturnType<typeof postgresJs<{ big: bigint }>>>
  expectTypeOf<OfPostgresJs>().toEqualTypeOf<TransactionSql<{ big: bigint }>>()
  expectTypeOf<
    TransactionOf<ReturnType<typeof nodePostgres>>
  >().toEqualTypeOf<NodePostgresTransaction>()
  expectTypeOf<TransactionOf<NodePgDatabase>>().toHaveProperty('rollback')
})
