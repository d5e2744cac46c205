// The inbox brings its own table, in a database that may have no outbox: applied by many at once, under any name.
import { generateDrizzleJson, generateMigration } from 'drizzle-kit/api'
import { MIGRATION_NAMES } from '../../support/migration-names.ts'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createInbox } from '../../../src/inbox/inbox.ts'
import { createOutbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { inboxTable } from '../../../src/store/schema.ts'
import {
  connect,
  createDatabase,
  type TestConnection,
  type TestDatabase,
} from '../../support/servers/database.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'

let database: TestDatabase
let connection: TestConnection
beforeAll(async () => {
  database = await createDatabase()
  connection = connect(database.url)
  await createInbox({ db: connection.db, consumer: 'any' }).migrate()
})
afterAll(async () => {
  await connection.close()
  await database.drop()
})

const columnsOf = (schema: string, table: string) => connection.client`
  select column_name, data_type, is_nullable, column_default from information_schema.columns
  where table_schema = ${schema} and table_name = ${table} order by ordinal_position`
const indexesOf = async (schema: string, table: string) => {
  const rows = await connection.client`
    select indexdef from pg_indexes where schemaname = ${schema} and tablename = ${table}`
  return rows.map((row) => (row['indexdef'] as string).replace(` ON ${schema}.`, ' ON ')).toSorted()
}

it('needs no outbox table', async () => {
  const tables = await connection.client`
    select table_name from information_schema.tables where table_schema = 'public' order by 1`
  expect(tables.map((row) => row['table_name'] as string)).toEqual(['inbox', 'inbox_migrations'])
  expect(await indexesOf('public', 'inbox')).toHaveLength(3)
})

it('lets ten instances migrate at once', async () => {
  const connections = Array.from({ length: 10 }, () => connect(database.url))
  await Promise.all(
    connections.map(({ db }) => createInbox({ db, consumer: 'any', table: 'raced' }).migrate()),
  )
  await Promise.all(connections.map((one) => one.close()))
  expect(await columnsOf('public', 'raced')).toEqual(await columnsOf('public', 'inbox'))
})

it('lets ten instances migrate at once, beside an outbox in the same new schema', async () => {
  const connections = Array.from({ length: 10 }, () => connect(database.url))
  const publisher = handlersPublisher({ handlers: {} })
  const schema = 'messaging'
  await Promise.all(
    connections.flatMap(({ db }) => [
      createInbox({ db, consumer: 'any', schema, table: 'seen' }).migrate(),
      createOutbox({ db, publisher, schema, table: 'sent' }).migrate(),
    ]),
  )
  await Promise.all(connections.map((one) => one.close()))
  expect(await columnsOf(schema, 'seen')).toEqual(await columnsOf('public', 'inbox'))
  expect(await indexesOf(schema, 'seen')).toHaveLength(3)
  expect(await connection.client`select name from messaging.seen_migrations`).toHaveLength(1)
  const sent = await connection.client`select name from messaging.sent_migrations order by name`
  expect(sent.map(({ name }) => name as string)).toEqual(MIGRATION_NAMES)
})

it('makes the table that inboxTable() describes to those who keep it in their own migrations', async () => {
  const described = generateDrizzleJson({ inbox: inboxTable() })
  const statements = await generateMigration(generateDrizzleJson({}), described)
  await connection.client.begin(async (tx) => {
    await tx.unsafe('create schema kept; set local search_path to kept')
    for (const statement of statements) await tx.unsafe(statement)
  })
  expect(await columnsOf('kept', 'inbox')).toEqual(await columnsOf('public', 'inbox'))
  expect(await indexesOf('kept', 'inbox')).toEqual(await indexesOf('public', 'inbox'))
})

it.each([
  ['quotes', { schema: 'we"ird', table: `my "in''box"` }],
  ['a statement', { schema: 'x; drop table inbox;--', table: 'a b;c' }],
  ['as many letters as fit', { schema: 's'.repeat(63), table: 't'.repeat(49) }],
])('works under names with %s', async (_, names) => {
  const inbox = createInbox({
    db: connection.db,
    consumer: `o'br"ien`,
    order: 'aggregate',
    migrate: true,
    ...names,
  })
  await inbox.start()
  const message = { id: '1', aggregateType: 'order', aggregateId: `"'`, seq: 1 }
  expect(await inbox.once(message, () => {})).toMatchObject({ outcome: 'handled' })
  expect(await inbox.once(message, () => {})).toEqual({ outcome: 'duplicate' })
  expect(await inbox.purge()).toBe(0)
  await inbox.stop()
})

it('needs no rights to create anything once the table is up to date', async () => {
  const role = uniqueName('tenant')
  await connection.client.unsafe(`create role "${role}" login;
    grant select, insert, update, delete on inbox to "${role}"; grant select on inbox_migrations to "${role}"`)
  const url = new URL(database.url)
  url.username = role
  const tenant = connect(url.href)
  try {
    const inbox = createInbox({ db: tenant.db, consumer: 'tenant', migrate: true })
    await inbox.start()
    expect(await inbox.once({ id: '1' }, () => {})).toMatchObject({ outcome: 'handled' })
    expect(await inbox.purge()).toBe(0)
    await inbox.stop()
  } finally {
    await tenant.close()
    await connection.client.unsafe(`drop owned by "${role}"; drop role "${role}"`)
  }
})

it('goes on with migrations of a newer version, and refuses to start with one that breaks it', async () => {
  const logger = recordingLogger()
  const options = { db: connection.db, consumer: 'any', table: 'newer', logger }
  const inbox = createInbox(options)
  await inbox.migrate()
  await connection.client`insert into newer_migrations (name) values ('9998_more.sql')`
  await inbox.start()
  expect(logger.lines).toContainEqual(
    expect.objectContaining({ level: 'warn', fields: { migrations: ['9998_more.sql'] } }),
  )
  await inbox.stop()
  await connection.client`insert into newer_migrations (name) values ('9999_breaking_change.sql')`
  await expect(createInbox(options).start()).rejects.toMatchObject({
    code: 'SCHEMA_NEWER',
    message: expect.stringContaining('9999_breaking_change.sql') as string,
  })
})

it('refuses to start, or to handle, without its table, and names the remedy', async () => {
  const inbox = createInbox({ db: connection.db, consumer: 'any', table: 'nowhere' })
  await expect(inbox.start()).rejects.toMatchObject({ code: 'TABLE_MISSING' })
  const handled = inbox.once({ id: '1' }, () => expect.fail('called'))
  await expect(handled).rejects.toMatchObject({ code: 'TABLE_MISSING' })
  await expect(handled).rejects.toThrow(/call migrate\(\)/)
  await inbox.stop()
})
