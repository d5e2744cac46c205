// Turns the option `db` into the database that the library uses, or throws an error that names the remedy.
import { OutboxOptionsError } from '../errors.ts'
import type { AnyDatabase, Database, DrizzleDatabase } from './driver.ts'
import { drizzleDatabase } from './drizzle.ts'
import { isKnex } from './knex-query.ts'
import { isKysely } from './kysely-query.ts'
import { refuseSingleClient } from './node-postgres-pool.ts'
import { isPrisma } from './prisma-query.ts'
import { isTypeormSource } from './typeorm-query.ts'
import { refuseRenaming } from './postgres-js-transform.ts'

export function databaseOf(db: AnyDatabase): Database<unknown> {
  if (isDatabase(db)) return db
  if (!isDrizzle(db)) throw new OutboxOptionsError(`db ${remedyFor(db)}`)
  if (has(db, 'rollback')) {
    throw new OutboxOptionsError(
      'db is a transaction, so events would be published although it may still roll back; pass the database that it was begun on',
    )
  }
  const { $client } = db as { $client?: unknown }
  refuseSingleClient('db', $client)
  refuseRenaming('db', $client)
  return drizzleDatabase(db)
}

function isDatabase(db: unknown): db is Database<unknown> {
  return has(db, 'query') && has(db, 'begin')
}

function isDrizzle(db: unknown): db is DrizzleDatabase {
  return has(db, 'execute') && has(db, 'transaction')
}

function remedyFor(db: unknown): string {
  if (isKnex(db)) return "is a Knex; pass knexDatabase(knex) from 'aftercommit/knex'"
  if (isTypeormSource(db)) {
    return "is a DataSource of TypeORM; pass typeormDatabase(dataSource) from 'aftercommit/typeorm'"
  }
  if (isPrisma(db))
    return "is a client of Prisma; pass prismaDatabase(prisma) from 'aftercommit/prisma'"
  if (isKysely(db)) return "is a Kysely; pass kyselyDatabase(db) from 'aftercommit/kysely'"
  if (has(db, 'begin') && has(db, 'unsafe')) {
    return "is a postgres.js client; pass postgresJs(sql) from 'aftercommit/postgres-js', or drizzle(sql)"
  }
  if (has(db, 'connect') && has(db, 'query')) {
    return "is a node-postgres client; pass nodePostgres(pool) from 'aftercommit/node-postgres', or drizzle(pool)"
  }
  return 'must be a Drizzle Postgres database, or your client wrapped by its driver: postgresJs(sql), nodePostgres(pool), kyselyDatabase(db), knexDatabase(knex), typeormDatabase(dataSource) or prismaDatabase(prisma)'
}

function has(value: unknown, method: string): boolean {
  return typeof (value as Record<string, unknown> | null | undefined)?.[method] === 'function'
}
