// The library brings its own table: applied by many at once, any number of times, under any name.
import { readFile } from 'node:fs/promises'
import { generateDrizzleJson, generateMigration } from 'drizzle-kit/api'
import { sql as raw } from 'drizzle-orm'
import { pgSchema } from 'drizzle-orm/pg-core'
import { expect, it } from 'vitest'
import { databaseOf } from '../../../src/drivers/database-of.ts'
import { createOutbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { outboxInstancesTable, outboxPausesTable, outboxTable } from '../../../src/store/schema.ts'
import { connect } from '../../support/servers/database.ts'
import { useFixture } from '../../support/fixture.ts'
import { MIGRATION_NAMES } from '../../support/migration-names.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { leased, prepare } from '../../support/conformance/store-under-test.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'

const fixture = useFixture()
const publisher = handlersPublisher({ handlers: { OrderCompleted: () => {} } })

const columnsOf = (schema: string, table: string) => fixture.sql`
  select column_name, data_type, is_nullable, column_default from information_schema.columns
  where table_schema = ${schema} and table_name = ${table} order by ordinal_position`
const indexesOf = (schema: string, table: string) => fixture.sql<Record<string, string>[]>`
  select indexname, indexdef from pg_indexes where schemaname = ${schema} and tablename = ${table}`
/** The indexes of the outbox table there, without the name of the schema. */
const definitionsOf = async (schema: string) =>
  (await indexesOf(schema, 'outbox'))
    .map(({ indexdef }) => indexdef!.replace(` ON ${schema}.`, ' ON '))
    .toSorted()

/** Saves events of one aggregate, one in each transaction, all under one lease. */
function savingInto(names: { schema: string; table?: string }) {
  const store = fixture.store(names)
  const lease = leased()
  return async () => {
    const events = prepare([{ aggregateId: 'one' }])
    const [saved] = await databaseOf(fixture.db).begin((tx) => store.save(tx, events, lease))
    return saved!
  }
}

it('lets ten instances migrate at once', async () => {
  const names = { schema: 'ten', table: 'events' }
  const connections = Array.from({ length: 10 }, () => connect(fixture.url))
  const outboxes = connections.map(({ db }) => createOutbox({ db, publisher, ...names }))
  await Promise.all(outboxes.map((outbox) => outbox.migrate()))
  await Promise.all(connections.map((connection) => connection.close()))
  expect(await columnsOf('ten', 'events')).toEqual(await columnsOf('public', 'outbox'))
  expect(await indexesOf('ten', 'events')).toHaveLength(7)
  const applied = await fixture.sql`select name from ten.events_migrations order by name`
  expect(applied.map(({ name }) => name as string)).toEqual(MIGRATION_NAMES)
})

it('brings a table of the first version up to date, and keeps what is in it', async () => {
  const first = await readFile(new URL('../../../drizzle/0000_create_outbox.sql', import.meta.url))
  await fixture.sql.begin(async (tx) => {
    await tx.unsafe('create schema early; set local search_path to early')
    await tx.unsafe(first.toString())
    await tx.unsafe(`create table outbox_migrations (name text primary key, applied_at timestamptz);
      insert into outbox_migrations values ('0000_create_outbox.sql', now());
      insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers,
        max_attempts, available_at, occurred_at)
      values (gen_random_uuid(), 1, 'order', '1', 'OrderCompleted', 'order', '1', '{}', 10, now(), now())`)
  })
  const outbox = fixture.outbox({ publisher, schema: 'early' })
  await outbox.migrate()
  expect(await definitionsOf('early')).toEqual(await definitionsOf('public'))
  expect(await outbox.pollOnce()).toBe(1)
  expect(await fixture.sql`select status from early.outbox`).toEqual([{ status: 'published' }])
})

it('makes the table again for whoever has dropped it', async () => {
  const store = fixture.store({ schema: 'again' })
  await store.migrate()
  await fixture.sql`drop table again.outbox, again.outbox_migrations`
  await store.migrate()
  const save = savingInto({ schema: 'again' })
  const first = await save()
  expect(await save()).toMatchObject({ follows: [first.event.seq] })
})

it('saves by the function also where the table has columns called as its parameters', async () => {
  await fixture.store({ schema: 'wider' }).migrate()
  await fixture.sql`alter table wider.outbox add column own_lane bigint,
    add column place bigint, add column earlier bigint, add column dead_letters_hold boolean`
  const save = savingInto({ schema: 'wider' })
  const first = await save()
  expect(await save()).toMatchObject({ follows: [first.event.seq] })
  await fixture.sql`drop function wider.outbox_follows`
  await expect(save(), 'the function was called').rejects.toThrow('outbox_follows')
})

it('makes the tables that aftercommit/schema describes to those who keep them in their own migrations', async () => {
  const described = generateDrizzleJson({
    outbox: outboxTable(),
    pauses: outboxPausesTable(),
    instances: outboxInstancesTable(),
  })
  const statements = await generateMigration(generateDrizzleJson({}), described)
  await fixture.sql.begin(async (tx) => {
    await tx.unsafe('create schema kept; set local search_path to kept')
    for (const statement of statements) await tx.unsafe(statement)
  })
  for (const table of ['outbox', 'outbox_pauses', 'outbox_instances']) {
    const columns = await columnsOf('kept', table)
    expect(columns.length).toBeGreaterThan(0)
    expect(columns).toEqual(await columnsOf('public', table))
  }
  expect(await definitionsOf('kept')).toEqual(await definitionsOf('public'))
})

it('takes the function from a migration of their own too, and leaves alone what follows it', async () => {
  const file = new URL('../../../drizzle/0001_follows.sql', import.meta.url)
  const text = (await readFile(file)).toString()
  const statements = await generateMigration(
    generateDrizzleJson({}),
    generateDrizzleJson({
      copied: pgSchema('copied'),
      events: outboxTable('events', 'copied'),
    }),
  )
  // As Drizzle does: all that is pending in one transaction.
  await fixture.sql.begin(async (tx) => {
    for (const statement of statements) await tx.unsafe(statement)
    await tx.unsafe(text.replaceAll(/"outbox(_follows)?"/g, '"copied"."events$1"'))
    await tx.unsafe('create table "users" ()')
  })
  const users = await fixture.sql`select schemaname from pg_tables where tablename = 'users'`
  expect(users).toEqual([{ schemaname: 'public' }])
  const save = savingInto({ schema: 'copied', table: 'events' })
  const first = await save()
  expect(await save()).toMatchObject({ follows: [first.event.seq] })
})

it.each([
  ['is missing', 'drop function own.outbox_follows'],
  ['cannot find its table, as the schema has another name', 'alter schema own rename to own_now'],
])(
  'refuses to start, and to save, where the function %s, and names the remedy',
  async (_, change) => {
    await fixture.sql`drop schema if exists own cascade`
    await fixture.sql`drop schema if exists own_now cascade`
    await fixture.store({ schema: 'own' }).migrate()
    await fixture.sql.unsafe(change)
    const schema = change.includes('rename') ? 'own_now' : 'own'
    const outbox = fixture.outbox({ publisher, schema })
    await expect(outbox.start()).rejects.toMatchObject({ code: 'TABLE_MISSING' })
    await expect(outbox.start()).rejects.toThrow('drizzle/0001_follows.sql')
    await expect(savingInto({ schema })()).rejects.toMatchObject({ code: 'TABLE_MISSING' })
  },
)

it.each(['outbox_pauses', 'outbox_instances'])(
  'refuses to start without the table %s, and names the file that makes it',
  async (table) => {
    const schema = `without_${table}`
    const store = fixture.store({ schema })
    await store.migrate()
    await fixture.sql.unsafe(`drop table ${schema}.${table}`)
    const outbox = fixture.outbox({ publisher, schema })
    await expect(outbox.start()).rejects.toMatchObject({ code: 'TABLE_MISSING' })
    await expect(outbox.start()).rejects.toThrow('drizzle/0002_control.sql')
  },
)

it('refuses to start before the column for the history is there, and names the file that adds it', async () => {
  const store = fixture.store({ schema: 'without_history' })
  await store.migrate()
  await fixture.sql`alter table without_history.outbox_instances drop column history`
  const outbox = fixture.outbox({ publisher, schema: 'without_history' })
  await expect(outbox.start()).rejects.toThrow('drizzle/0006_history.sql')
})

it.each([
  ['quotes', { schema: 'we"ird', table: `my "out''box"` }],
  ['a statement', { schema: 'x; drop table outbox;--', table: 'a b;c' }],
  ['other alphabets', { schema: 'схема', table: '出站' }],
])('works under names with %s', async (_, names) => {
  const outbox = fixture.outbox({ publisher, ...names, migrate: true })
  await outbox.start()
  await outbox.withOutbox(async (__, emit) => emit(newEvent()))
  await outbox.stop()
  const rows = await fixture.sql`
    select status from ${fixture.sql(names.schema)}.${fixture.sql(names.table)}`
  expect(rows).toEqual([{ status: 'published' }])
})

it('needs no rights to create anything once the table is up to date', async () => {
  const role = uniqueName('tenant')
  await fixture.sql.unsafe(`
    create role "${role}" login; grant select, insert, update, delete
      on outbox, outbox_pauses, outbox_instances to "${role}";
    grant select on outbox_migrations to "${role}"`)
  const url = new URL(fixture.url)
  url.username = role
  const connection = connect(url.href)
  try {
    const outbox = fixture.outbox({ db: connection.db, publisher, migrate: true })
    await outbox.start()
    await outbox.withOutbox(async (_, emit) => emit(newEvent()))
    await outbox.stop()
    expect(await fixture.rows()).toMatchObject([{ status: 'published' }])
  } finally {
    await connection.close()
    await fixture.sql.unsafe(`drop owned by "${role}"; drop role "${role}"`)
  }
})

it('refuses to start without its table, and names the remedy', async () => {
  const outbox = fixture.outbox({ publisher, table: 'nowhere' })
  await expect(outbox.start()).rejects.toMatchObject({ code: 'TABLE_MISSING' })
  await expect(outbox.start()).rejects.toThrow(/call migrate\(\)/)
})

it('names the remedy when the role lacks a right', async () => {
  const role = uniqueName('visitor')
  const schema = uniqueName('closed')
  await fixture.store({ schema }).migrate()
  await fixture.sql.unsafe(`create role "${role}" login`)
  const url = new URL(fixture.url)
  url.username = role
  const connection = connect(url.href)
  try {
    const outbox = fixture.outbox({ db: connection.db, publisher, schema, migrate: true })
    await expect(outbox.start()).rejects.toMatchObject({
      code: 'STORE_FAILED',
      message: `migrate the table: permission denied for schema ${schema}; \`aftercommit grants\` prints the rights, \`aftercommit doctor\` names what is missing`,
    })
  } finally {
    await connection.close()
    await fixture.sql.unsafe(`drop role "${role}"`)
  }
})

it('looks up rows to send in partial indexes that leave history out', async () => {
  const definitions = (await indexesOf('public', 'outbox')).map((index) => index['indexdef'])
  expect(definitions).toContainEqual(
    expect.stringMatching(/\(topic, available_at, seq\) WHERE .*pending.*failed/),
  )
  expect(definitions).toContainEqual(expect.stringMatching(/\(lane, seq\) WHERE .*pending.*failed/))
})

it('leaves the search path of the connection as it was', async () => {
  const connection = connect(fixture.url, { max: 1 })
  const searchPath = () => connection.db.execute(raw`show search_path`)
  const before = await searchPath()
  await createOutbox({ db: connection.db, publisher, schema: 'elsewhere' }).migrate()
  expect(await searchPath()).toEqual(before)
  await connection.close()
})
