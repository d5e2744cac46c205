// What a unit of work gets from each driver, checked by tsc as part of `npm run check`; vitest runs this file for its
// form only.
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import type { Knex } from 'knex'
import type { Kysely, Transaction } from 'kysely'
import type { Pool, QueryResult } from 'pg'
import type { Sql, TransactionSql } from 'postgres'
import type { DataSource, EntityManager } from 'typeorm'
import { expectTypeOf, it } from 'vitest'
import { knexDatabase } from '../../src/drivers/knex.ts'
import { kyselyDatabase, type KyselyTransaction } from '../../src/drivers/kysely.ts'
import { nodePostgres, type NodePostgresTransaction } from '../../src/drivers/node-postgres.ts'
import { postgresJs } from '../../src/drivers/postgres-js.ts'
import { prismaDatabase, type PrismaTransactionOf } from '../../src/drivers/prisma.ts'
import { typeormDatabase } from '../../src/drivers/typeorm.ts'
import type { Prisma, PrismaClient } from '../support/prisma/generated/client.ts'
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

interface Tables {
  orders: { id: number; customer: string }
}

it('hands on the transaction of Kysely, with its tables, that can nest', () => {
  const check = (db: Kysely<Tables>) => {
    const outbox = createOutbox({ db: kyselyDatabase(db), publisher })
    const result = outbox.withOutbox(async (tx) => {
      expectTypeOf(tx).toEqualTypeOf<KyselyTransaction<Tables>>()
      expectTypeOf(tx).toExtend<Transaction<Tables>>()
      expectTypeOf(tx.savepoint(async (inner) => inner)).toEqualTypeOf<
        Promise<KyselyTransaction<Tables>>
      >()
      // @ts-expect-error there is no such table
      tx.selectFrom('nowhere')
      return await tx.selectFrom('orders').select('id').executeTakeFirst()
    })
    expectTypeOf(result).toEqualTypeOf<Promise<{ id: number } | undefined>>()
    expectTypeOf(outbox.db).toEqualTypeOf<Kysely<Tables>>()
    void db.transaction().execute((tx) => outbox.emitIn(tx, {} as never))
    // @ts-expect-error a database is no transaction
    void outbox.emitIn(db, {} as never)
  }
  expectTypeOf(check).toBeFunction()
})

it('hands on the transaction of Knex', () => {
  const check = (db: Knex<{ id: number }, { id: number }[]>) => {
    const outbox = createOutbox({ db: knexDatabase(db), publisher })
    const result = outbox.withOutbox(async (tx) => {
      expectTypeOf(tx).toEqualTypeOf<Knex.Transaction>()
      return await tx<{ id: number }>('orders').select('id').first()
    })
    expectTypeOf(result).toEqualTypeOf<Promise<{ id: number } | undefined>>()
    expectTypeOf(outbox.db).toEqualTypeOf<Knex<{ id: number }, { id: number }[]>>()
    void db.transaction((tx) => outbox.emitIn(tx, {} as never))
    // @ts-expect-error a database is no transaction
    void outbox.emitIn(db, {} as never)
  }
  expectTypeOf(check).toBeFunction()
})

it('hands on the manager of TypeORM', () => {
  const check = (source: DataSource) => {
    const outbox = createOutbox({ db: typeormDatabase(source), publisher })
    const result = outbox.withOutbox(async (tx) => {
      expectTypeOf(tx).toEqualTypeOf<EntityManager>()
      return await tx.transaction(async (inner) => inner.hasId({}))
    })
    expectTypeOf(result).toEqualTypeOf<Promise<boolean>>()
    expectTypeOf(outbox.db).toEqualTypeOf<DataSource>()
    void source.transaction((tx) => outbox.emitIn(tx, {} as never))
    void outbox.emitIn(source.createQueryRunner(), {} as never)
  }
  expectTypeOf(check).toBeFunction()
})

it('hands on the transaction of Prisma, with its models and extensions', () => {
  const check = (prisma: PrismaClient) => {
    const outbox = createOutbox({ db: prismaDatabase(prisma), publisher })
    const result = outbox.withOutbox(async (tx) => {
      expectTypeOf(tx).toEqualTypeOf<PrismaTransactionOf<PrismaClient>>()
      expectTypeOf(tx).toExtend<Prisma.TransactionClient>()
      // @ts-expect-error there is no such model
      void tx.nowhere
      return await tx.order.findFirstOrThrow({ select: { id: true } })
    })
    expectTypeOf(result).toEqualTypeOf<Promise<{ id: number }>>()
    expectTypeOf(outbox.db).toEqualTypeOf<PrismaClient>()
    void prisma.$transaction((tx) => outbox.emitIn(tx, {} as never))
    // @ts-expect-error a client is no transaction
    void outbox.emitIn(prisma, {} as never)
    const compute = () => 1
    const extended = prisma.$extends({ result: { order: { one: { compute } } } })
    const other = createOutbox({ db: prismaDatabase(extended), publisher })
    const one = other.withOutbox(async (tx) => (await tx.order.findFirstOrThrow()).one)
    expectTypeOf(one).toEqualTypeOf<Promise<number>>()
  }
  expectTypeOf(check).toBeFunction()
})

it('takes a client only by way of its driver', () => {
  const check = (sql: Sql, pool: Pool, db: Kysely<Tables>, knex: Knex, source: DataSource) => {
    // @ts-expect-error it takes typeormDatabase(dataSource)
    createOutbox({ db: source, publisher })
    // @ts-expect-error it takes knexDatabase(knex)
    createOutbox({ db: knex, publisher })
    // @ts-expect-error it takes kyselyDatabase(db)
    createOutbox({ db, publisher })
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
