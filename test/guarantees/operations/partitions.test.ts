// A partitioned table: days are made ahead and dropped whole, no save waits for either, and nothing unfinished is lost.
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { dashboard } from '../../../src/dashboard/dashboard.ts'
import { databaseOf } from '../../../src/drivers/database-of.ts'
import { createOutbox, type OutboxOptions } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import type { StoreRules } from '../../../src/store/outbox/outbox-store.ts'
import { previewStore } from '../../../src/store/outbox/preview/preview-store.ts'
import { lockName } from '../../../src/store/table-name.ts'
import { previewPurge } from '../../../src/upkeep/purge-preview.ts'
import { leased, prepare } from '../../support/conformance/store-under-test.ts'
import { clientOf } from '../../support/dashboard-client.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { useFixture } from '../../support/fixture.ts'
import { insertOldRows, type OldRows } from '../../support/old-rows.ts'
import { connect } from '../../support/servers/database.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
const handlers = { OrderCompleted: () => {} }
const publisher = handlersPublisher({ handlers })

let tables = 0

/** A table in a schema of its own; `days`: with a partition for each of so many days before today, and for three after it. */
async function newTable({ days = 0, partitioned = true } = {}) {
  const schema = `table_${(tables += 1)}`
  await fixture.store({ schema }).migrate({ partitioned })
  const { sql } = fixture
  const name = `${schema}.outbox`
  if (days > 0) {
    await sql.unsafe(`select ${schema}.outbox_drop_part('${schema}.outbox_before'::regclass);
      select ${schema}.outbox_make_day(current_date - n, null) from generate_series(-3, ${days}) n`)
  }
  return {
    schema,
    name,
    insert: (rows: OldRows) => insertOldRows(sql, { ...rows, table: name }),
    outbox: (options: Partial<OutboxOptions<typeof fixture.db>> = {}) =>
      fixture.handling(handlers, { schema, ...options }),
    /** Each partition with the number of its rows, days by how many lie between them and today. */
    async partitions() {
      const rows = await sql.unsafe(`
        select coalesce((to_date(substring(relname from '_(\\d{8})$'), 'YYYYMMDD') - current_date)::text,
          substring(relname from '_(\\w+)$')) as name, count(id)::int as rows
        from pg_inherits join pg_class c on c.oid = inhrelid left join ${name} o on o.tableoid = c.oid
        where inhparent = '${name}'::regclass group by 1`)
      return Object.fromEntries(rows.map((row) => [row['name'], row['rows']])) as Record<
        string,
        number
      >
    },
    statuses: async () =>
      (await sql`select status from ${sql(name)} order by seq`).map((row) => row['status']),
  }
}

/** Four instances, each on connections of its own, that write until they are told to stop. */
async function fourWriters(schema: string) {
  const handled = new Set<string>()
  const connections = Array.from({ length: 4 }, () => connect(fixture.url))
  const outboxes = connections.map(({ db }) =>
    createOutbox({
      db,
      schema,
      publisher: handlersPublisher({
        handlers: { OrderCompleted: (event) => void handled.add(event.id) },
      }),
      cleanup: false,
      logger: false,
    }),
  )
  await Promise.all(outboxes.map((outbox) => outbox.start()))
  const saved: string[] = []
  const over = new AbortController()
  const running = outboxes.map(async (outbox) => {
    while (!over.signal.aborted) {
      saved.push(await outbox.withOutbox(async (_, emit) => emit(newEvent())))
    }
  })
  return {
    saved,
    outboxes,
    /** Resolves when each of them has saved so many more. */
    async goesOn(count = 40) {
      const before = saved.length
      await waitUntil(() => saved.length >= before + count, { message: 'units go on' })
    },
    async stop() {
      over.abort()
      await Promise.all(running)
      await waitUntil(() => saved.every((id) => handled.has(id)), { message: 'all are sent' })
      await Promise.all(outboxes.map((outbox) => outbox.stop()))
      await Promise.all(connections.map((connection) => connection.close()))
    },
  }
}

it('drops ten days of rows by whole days, while four instances write', async () => {
  const table = await newTable({ days: 10 })
  for (let days = 1; days <= 10; days += 1)
    await table.insert({ count: 50, status: 'published', days })
  // More than it looks at in one statement.
  await table.insert({ count: 12_000, status: 'published', days: 9 })
  const logger = recordingLogger()
  const writers = await fourWriters(table.schema)
  await writers.goesOn()
  const outbox = table.outbox({ logger })
  await Promise.all([outbox.purge(), ...writers.outboxes.map((other) => other.purge())])
  await writers.goesOn()
  await writers.stop()
  // For what had to wait too long for a lock, or for its turn.
  await outbox.purge()
  const { 0: today, ...others } = await table.partitions()
  expect(today).toBe(writers.saved.length)
  expect(others).toEqual({
    ...Object.fromEntries([1, 2, 3, 4, 5, 6, 7].map((days) => [-days, 50])),
    1: 0,
    2: 0,
    3: 0,
    default: 0,
  })
  expect(new Set(await table.statuses())).toEqual(new Set(['published']))
  expect(logger.lines.filter(({ level }) => level === 'warn')).toEqual([])
})

it('makes the partitions of today and of the three days after it, by itself', async () => {
  const table = await newTable()
  expect(await table.partitions()).toEqual({ before: 0, default: 0 })
  const outbox = table.outbox()
  await outbox.start()
  const made = async () => Object.keys(await table.partitions()).length === 5
  await waitUntil(made, { message: 'the first round made them' })
  expect(await table.partitions()).toEqual({ before: 0, 1: 0, 2: 0, 3: 0, default: 0 })
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  expect(await table.partitions()).toMatchObject({ before: 1, default: 0 })
})

it('is migrated by ten instances at once, which then make each day once', async () => {
  const connections = Array.from({ length: 10 }, () => connect(fixture.url, { max: 1 }))
  const logger = recordingLogger()
  const outboxes = connections.map(({ db }) =>
    createOutbox({ db, publisher, logger, schema: 'ten', migrate: 'partitioned' }),
  )
  await Promise.all(outboxes.map((outbox) => outbox.migrate()))
  await Promise.all(outboxes.map((outbox) => outbox.purge()))
  await outboxes[0]!.purge()
  await Promise.all(connections.map((connection) => connection.close()))
  const made = [1, 2, 3].map(() => ({ level: 'info', message: 'partition made' }))
  // One that had to wait too long for the lock of another leaves it to that one.
  expect(logger.lines.filter(({ level }) => level !== 'debug')).toMatchObject(made)
  // What one of them does that found out too late.
  const { day } = logger.lines.find(({ level }) => level === 'info')!.fields as { day: string }
  expect(await fixture.store({ schema: 'ten' }).partitions.make(day)).toBe(false)
})

it('saves and sends an event whose id is older than every partition', async () => {
  const table = await newTable({ days: 2 })
  const store = fixture.store({ schema: table.schema })
  const [event] = prepare([{}])
  const old = { ...event!, id: '01234567-89ab-7def-8123-456789abcdef' }
  await databaseOf(fixture.db).begin((tx) => store.save(tx, [old], leased(0)))
  expect(await table.partitions()).toMatchObject({ default: 1 })
  expect(await table.outbox().pollOnce()).toBe(1)
  expect(await table.statuses()).toEqual(['published'])
})

it('finds an event by its id in one partition', async () => {
  const table = await newTable({ days: 9 })
  await table.outbox().withOutbox(async (_, emit) => emit(newEvent()))
  const [row] = await fixture.sql`select id from ${fixture.sql(table.name)}`
  const plan = await fixture.sql.unsafe(
    `explain select * from ${table.name} where id = '${row!['id']}'`,
  )
  const text = plan.map((line) => line['QUERY PLAN']).join('\n')
  expect(text.match(/ on outbox_\w+/g)).toHaveLength(1)
  expect(text).toMatch(/ on outbox_\d{8}/)
})

it('gives up a drop that would have to wait, so that no save waits longer than its lock_timeout', async () => {
  const table = await newTable({ days: 8 })
  const logger = recordingLogger()
  const outbox = table.outbox({ logger })
  await table.insert({ count: 5, status: 'published', days: 8 })
  const functions = await fixture.sql`select proconfig from pg_proc
    where pronamespace = ${table.schema}::regnamespace and proname ~ '_(make_day|drop_part)$'`
  for (const { proconfig } of functions) expect(proconfig).toContain('lock_timeout=100ms')
  expect(functions).toHaveLength(2)
  // Long enough to see a save wait for it.
  await fixture.sql.unsafe(
    `alter function ${table.schema}.outbox_drop_part set lock_timeout = '15s'`,
  )
  const waiting = async () =>
    (
      await fixture.sql`select 1 from pg_locks where not granted and relation = ${table.name}::regclass`
    ).length
  await fixture.sql.begin(async (tx) => {
    // A unit of work that stays open.
    await tx`select 1 from ${tx(table.name)} limit 1`
    const purge = outbox.purge()
    await waitUntil(async () => (await waiting()) === 1, { message: 'the drop waits' })
    const began = performance.now()
    const save = outbox.withOutbox(async (_, emit) => emit(newEvent()))
    await waitUntil(async () => (await waiting()) === 2, { message: 'the save waits behind it' })
    await save
    expect(performance.now() - began).toBeLessThan(25_000)
    expect(await purge).toBe(0)
  })
  expect(await table.partitions()).toMatchObject({ '-8': 5, 0: 1 })
  expect(logger.lines).toMatchObject([
    { level: 'debug', message: expect.stringContaining('could not drop a partition') },
  ])
  expect(await outbox.purge()).toBe(5)
})

it.each(['scheduled', 'pending', 'failed', 'dead_letter'])(
  'never drops a row that is %s, even if it came while the drop waited',
  async (status) => {
    const table = await newTable({ days: 9 })
    const { partitions } = fixture.store({ schema: table.schema })
    const oldest = (await partitions.find(7 * 86_400_000))!.old[0]!
    expect(oldest.name).toMatch(/outbox_\d{8}/)
    await fixture.sql.unsafe(
      `alter function ${table.schema}.outbox_drop_part set lock_timeout = '30s'`,
    )
    const drop = await fixture.sql.begin(async (tx) => {
      await insertOldRows(tx as never, { count: 1, status, days: 9, table: table.name })
      const dropping = partitions.drop(oldest)
      const waiting = async () =>
        (
          await fixture.sql`select 1 from pg_locks where not granted and relation = ${table.name}::regclass`
        ).length
      await waitUntil(waiting, { message: 'the drop waits for the unit' })
      return { dropping }
    })
    expect(await drop.dropping).toBe(false)
    expect(await table.statuses()).toEqual([status])
    await fixture.sql`update ${fixture.sql(table.name)} set status = 'published'`
    expect(await partitions.drop(oldest)).toBe(true)
    expect(await partitions.drop(oldest), 'it is gone').toBe(false)
  },
)

it('drops nothing at an isolation level at which it could not see such a row', async () => {
  const { schema } = await newTable()
  const drop = fixture.sql.begin('isolation level repeatable read', (tx) =>
    tx.unsafe(`select ${schema}.outbox_drop_part('${schema}.outbox_before'::regclass)`),
  )
  await expect(drop).rejects.toThrow('read committed')
})

it('keeps a day until its last row is published and past retention', async () => {
  const table = await newTable({ days: 8 })
  const outbox = fixture.sql(table.name)
  // The last one that is looked at, and in a part of its own.
  await table.insert({ count: 10_001, status: 'published', days: 8 })
  await fixture.sql`update ${outbox} set published_at = now()
    where id = (select id from ${outbox} order by id limit 1)`
  expect(await table.outbox().purge()).toBe(0)
  expect(await table.partitions()).toMatchObject({ '-8': 10_001 })
  await fixture.sql`update ${outbox} set published_at = now() - interval '8 days'`
  expect(await table.outbox().purge()).toBe(10_001)
  expect(await table.partitions()).not.toHaveProperty('-8')
})

it('is counted before a purge while another instance has its turn, and takes no turn for it', async () => {
  const { schema, insert, outbox } = await newTable({ days: 6 })
  await insert({ count: 5, status: 'published', days: 3 })
  const { post } = clientOf(
    dashboard(outbox({ retention: '1d' }), { authorize: () => ({ mayAct: true }) }),
  )
  const turn = `${lockName({ schema, name: 'outbox' })} purge`
  const purging = await fixture.sql.reserve()
  try {
    await purging`select pg_advisory_lock(hashtextextended(${turn}, 0))`
    expect(await post('preview', { act: 'purge' })).toMatchObject({
      status: 200,
      body: { count: 5, exact: true },
    })
  } finally {
    await purging`select pg_advisory_unlock(hashtextextended(${turn}, 0))`
    purging.release()
  }
})

it('is counted before a purge up to a limit, however many rows and days there are', async () => {
  const { schema, insert } = await newTable({ days: 8 })
  for (const days of [3, 4, 5, 6, 7]) await insert({ count: 5, status: 'published', days })
  // The first day that it looks at stays, and costs as much to look at.
  await insert({ count: 12_000, status: 'published', days: 8 })
  await fixture.sql.unsafe(`update ${schema}.outbox set published_at = now()
    where id = (select id from ${schema}.outbox order by id limit 1)`)
  const { partitions } = fixture.store({ schema })
  let [looks, rows] = [0, 0]
  const counting: typeof partitions = {
    ...partitions,
    async peek(...look) {
      const part = await partitions.peek(...look)
      looks += 1
      rows += part.rows
      return part
    },
  }
  const rules = { table: { schema, name: 'outbox' }, statementTimeoutMs: 10_000 }
  const store = {
    partitions: counting,
    preview: previewStore(databaseOf(fixture.db), rules as StoreRules),
  }
  const day = 86_400_000
  const count = async (most: number) => {
    ;[looks, rows] = [0, 0]
    return await previewPurge(store, { retentionMs: day, deadLetterRetentionMs: null }, most)
  }
  const all = await count(100_000)
  expect(all).toMatchObject({ published: { count: 12_024, exact: true } })
  expect(all.partitions.length).toBeGreaterThanOrEqual(5)
  expect(await count(10)).toMatchObject({ published: { count: 10, exact: false }, partitions: [] })
  expect([looks, rows]).toEqual([1, 10_000])
  const some = await count(12_010)
  expect(some.published).toEqual({ count: 12_010, exact: false })
  expect(some.partitions).toEqual(all.partitions.slice(0, 2))
})

it('deletes the rows around a dead letter in batches two days later, and its day when it is gone', async () => {
  const table = await newTable({ days: 12 })
  for (const days of [8, 10, 11]) {
    await table.insert({ count: 4, status: 'published', days })
    await table.insert({ count: 1, status: 'dead_letter', days })
  }
  expect(await table.outbox().purge()).toBe(8)
  expect(await table.partitions()).toMatchObject({ '-8': 5, '-10': 1, '-11': 1 })
  expect(await table.outbox({ deadLetterRetention: '10d' }).purge()).toBe(2)
  const left = await table.partitions()
  expect(left).toMatchObject({ '-8': 5 })
  expect(left).not.toHaveProperty('-10')
})

it('deletes the rows around a scheduled event in batches, and its day when that has gone out', async () => {
  const table = await newTable({ days: 10 })
  await table.insert({ count: 4, status: 'published', days: 10 })
  await table.insert({ count: 1, status: 'scheduled', days: 10 })
  const outbox = table.outbox()
  expect(await outbox.purge()).toBe(4)
  expect(await table.partitions()).toMatchObject({ '-10': 1 })
  const rows = fixture.sql(table.name)
  await fixture.sql`update ${rows} set deliver_at = clock_timestamp()`
  expect(await outbox.pollOnce()).toBe(1)
  expect(await outbox.purge()).toBe(0)
  await fixture.sql`update ${rows} set published_at = published_at - interval '8 days'`
  expect(await outbox.purge()).toBe(1)
  expect(await table.partitions()).not.toHaveProperty('-10')
})

it('drops the empty days behind it when retention is 0', async () => {
  const table = await newTable({ days: 3 })
  const outbox = table.outbox({ retention: 0, cleanup: false })
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await waitUntil(async () => (await table.statuses()).length === 0, { message: 'it is deleted' })
  await outbox.purge()
  expect(await table.partitions()).toEqual({ 0: 0, 1: 0, 2: 0, 3: 0, default: 0 })
})

it('leaves a day that has rows in the default partition there, and deletes those in batches', async () => {
  const table = await newTable()
  await fixture.sql.unsafe(`drop table ${table.schema}.outbox_before`)
  await table.outbox().withOutbox(async (_, emit) => emit(newEvent()))
  await table.insert({ count: 5, status: 'published', days: 10 })
  await table.insert({ count: 3, status: 'published', days: 6 })
  const logger = recordingLogger()
  expect(await table.outbox({ logger }).purge()).toBe(5)
  expect(await table.partitions()).toEqual({ default: 4, 1: 0, 2: 0, 3: 0 })
  expect(logger.lines.filter(({ level }) => level !== 'info')).toEqual([])
})

it('attaches nothing beside a default partition that would take long to scan, and says so', async () => {
  const table = await newTable()
  const make =
    fixture.sql.unsafe(`insert into ${table.name} (id, lane, aggregate_type, aggregate_id,
      event_type, topic, payload, headers, max_attempts, available_at, occurred_at)
    values ('ffffffff-ffff-ffff-ffff-ffffffffffff', 1, 'a', 'a', 'a', 'a', '1', '{}', 1, now(), now());
    select ${table.schema}.outbox_make_day(current_date + 1, 1000)`)
  await expect(make).rejects.toThrow('the default partition is larger than 1000 bytes')
})

it('lets any member of its owner drop a day that another one has made', async () => {
  const table = await newTable()
  const [owner, one, two] = ['owner', 'one', 'two'].map((name) => uniqueName(name))
  await fixture.sql.unsafe(`
    create role "${owner}"; create role "${one}" in role "${owner}"; create role "${two}" in role "${owner}";
    grant usage, create on schema ${table.schema} to "${owner}";
    alter table ${table.name} owner to "${owner}"; alter table ${table.name}_default owner to "${owner}"`)
  const session = await fixture.sql.reserve()
  try {
    const make = `${table.schema}.outbox_make_day(current_date + 30, null)`
    await session.unsafe(`set role "${one}"`)
    expect(await session.unsafe(`select ${make} as made`)).toEqual([{ made: true }])
    await session.unsafe(`set role "${two}"`)
    const made = `${table.name}_' || to_char(current_date + 30, 'YYYYMMDD')`
    const drop = `${table.schema}.outbox_drop_part(('${made})::regclass)`
    expect(await session.unsafe(`select ${drop} as dropped`)).toEqual([{ dropped: true }])
  } finally {
    await session.unsafe('reset role')
    session.release()
    await fixture.sql.unsafe(`drop schema ${table.schema} cascade; drop owned by "${owner}";
      drop role "${one}"; drop role "${two}"; drop role "${owner}"`)
  }
})

it('goes on as on a plain table where its role may not make or drop partitions, and names the remedy once', async () => {
  const table = await newTable({ days: 12 })
  for (const days of [8, 11]) await table.insert({ count: 5, status: 'published', days })
  const role = uniqueName('tenant')
  await fixture.sql.unsafe(`
    create role "${role}" login; grant usage on schema ${table.schema} to "${role}";
    grant select, insert, update, delete
      on ${table.name}, ${table.name}_pauses, ${table.name}_instances to "${role}"`)
  const url = new URL(fixture.url)
  url.username = role
  const connection = connect(url.href)
  const logger = recordingLogger()
  try {
    const outbox = table.outbox({ db: connection.db, logger })
    await outbox.withOutbox(async (_, emit) => emit(newEvent()))
    expect(await outbox.purge()).toBe(5)
    expect(await outbox.purge()).toBe(0)
    expect(await outbox.pollOnce()).toBe(1)
    await outbox.stop()
  } finally {
    await connection.close()
    await fixture.sql.unsafe(`drop owned by "${role}"; drop role "${role}"`)
  }
  expect(await table.partitions()).toMatchObject({ '-8': 5, '-11': 0, 0: 1 })
  expect(logger.lines.filter(({ level }) => level === 'warn')).toMatchObject([
    {
      message: expect.stringMatching(
        /this role may not .* let the owner .* call outbox\.purge\(\)/,
      ),
    },
  ])
})

it('switches over with rows in place while four instances write: units wait, nothing is lost, seq goes on', async () => {
  const table = await newTable({ partitioned: false })
  for (const status of ['published', 'pending', 'dead_letter']) {
    await table.insert({ count: 5, status, days: 3 })
  }
  // From a machine whose clock is ahead.
  await table.insert({ count: 2, status: 'published', days: -3 })
  const role = uniqueName('reader')
  await fixture.sql.unsafe(`create role "${role}"; grant select on ${table.name} to "${role}" with grant option;
    grant insert on ${table.name} to public`)
  const writers = await fourWriters(table.schema)
  await writers.goesOn()
  await Promise.all(writers.outboxes.map((outbox) => outbox.migrate({ partitioned: true })))
  await writers.goesOn()
  await table.outbox().purge()
  await writers.goesOn()
  await writers.stop()
  const rows =
    await fixture.sql`select id, seq::int, status from ${fixture.sql(table.name)} order by seq`
  expect(rows.filter(({ id }) => writers.saved.includes(id as string))).toHaveLength(
    writers.saved.length,
  )
  expect(rows).toHaveLength(writers.saved.length + 17)
  expect(new Set(rows.map(({ seq }) => seq)).size).toBe(rows.length)
  expect(rows.filter(({ status }) => status === 'pending')).toEqual([])
  // The order of saving is that of seq, before and after.
  expect(rows[0]!['seq']).toBe(1)
  expect(rows.at(-1)!['seq']).toBeLessThan(rows.length + 10)
  expect(await table.partitions()).toMatchObject({ default: 2, before: rows.length - 2 })
  const [{ grants } = { grants: null }] = await fixture.sql`
    select string_agg(grantee || ' ' || privilege_type || ' ' || is_grantable, ', ' order by grantee) as grants
    from information_schema.table_privileges
    where table_schema = ${table.schema} and table_name = 'outbox' and grantee <> 'postgres'`
  expect(grants).toBe(`PUBLIC INSERT NO, ${role} SELECT YES`)
  await fixture.sql.unsafe(`drop owned by "${role}"; drop role "${role}"`)
})

it('is refused for a table that a publication names, which would not follow it', async () => {
  const table = await newTable({ partitioned: false })
  const { schema, name } = table
  const { sql } = fixture
  const made = uniqueName('Published')
  await sql.unsafe(`create publication "${made}" for table ${name}`)
  const refused = fixture.store({ schema }).migrate({ partitioned: true })
  await expect(refused).rejects.toThrow(
    new RegExp(`in the publication "${made}", .* drop the publication, make the partitions`),
  )
  await table.outbox().withOutbox(async (_, emit) => emit(newEvent()))
  expect(await table.partitions()).toEqual({})
  await sql.unsafe(`drop publication "${made}"`)
  await fixture.store({ schema }).migrate({ partitioned: true })
  expect(await table.partitions()).toMatchObject({ before: 1 })
})

it('stays partitioned when it is migrated without being asked to be', async () => {
  const table = await newTable()
  const before =
    await fixture.sql`select * from ${fixture.sql(`${table.schema}.outbox_migrations`)}`
  await table.outbox({ migrate: true }).start()
  await fixture.store({ schema: table.schema }).migrate({ partitioned: false })
  expect(
    await fixture.sql`select * from ${fixture.sql(`${table.schema}.outbox_migrations`)}`,
  ).toEqual(before)
  expect(before.map(({ name }) => name as string)).toContain('partitioned/0000_partitions.sql')
  expect(await table.partitions()).toHaveProperty('default')
})

it('has the same columns and indexes as a plain table', async () => {
  const schemas = [(await newTable({ partitioned: false })).schema, (await newTable()).schema]
  const [plain, partitioned] = await Promise.all(
    schemas.map(async (schema) => ({
      columns: await fixture.sql`
        select column_name, data_type, is_nullable from information_schema.columns
        where table_schema = ${schema} and table_name = 'outbox' order by ordinal_position`,
      indexes: (
        await fixture.sql`select indexdef from pg_indexes where schemaname = ${schema} and tablename = 'outbox'`
      )
        .map(({ indexdef }) => indexdef.replace(/ ON (ONLY )?\w+\./, ' ON ') as string)
        .toSorted(),
    })),
  )
  expect(partitioned).toEqual(plain)
})

it('gets an index that came later, on all its partitions', async () => {
  const { schema } = await newTable()
  const indexes = () => fixture.sql`
    select tablename, indexdef from pg_indexes where schemaname = ${schema} order by tablename, indexdef`
  const before = await indexes()
  await fixture.sql`drop index ${fixture.sql(`${schema}.outbox_failed_idx`)}`
  await fixture.sql`
    delete from ${fixture.sql(`${schema}.outbox_migrations`)} where name = '0003_failed.sql'`
  await fixture.store({ schema }).migrate()
  const names = ({ tablename, indexdef }: Record<string, string>) =>
    `${tablename} ${indexdef!.replace(/INDEX \S+ /, '')}`
  expect((await indexes()).map(names).toSorted()).toEqual(before.map(names).toSorted())
})

it.each([
  ['quotes', { schema: 'part"ed', table: `my "out''box%s"` }],
  ['a statement', { schema: 'parts; drop table outbox;--', table: 'a b;c' }],
  ['other alphabets', { schema: 'части', table: '出站' }],
  ['all the bytes that there are', { schema: 'long', table: 'x'.repeat(49) }],
])('works under names with %s', async (_, names) => {
  const outbox = fixture.handling(handlers, { ...names, migrate: 'partitioned', cleanup: false })
  await outbox.start()
  await outbox.withOutbox(async (__, emit) => emit(newEvent()))
  await outbox.stop()
  await outbox.purge()
  const { sql } = fixture
  const rows =
    await sql`select status, tableoid::regclass::text as part from ${sql(names.schema)}.${sql(names.table)}`
  expect(rows).toMatchObject([{ status: 'published', part: expect.stringContaining('_before') }])
  const store = fixture.store(names)
  const found = await store.partitions.find(-3 * 86_400_000)
  expect(found).toMatchObject({ missing: [], old: { length: 3 } })
  expect(await store.partitions.drop(found!.old[2]!)).toBe(true)
})

it('is made from files that a migration tool of your own can run, in any schema', async () => {
  const files = [
    '0000_create_outbox.sql',
    '0001_follows.sql',
    '0003_failed.sql',
    '0004_scheduled.sql',
    'partitioned/0000_partitions.sql',
  ]
  const texts = await Promise.all(
    files.map((file) => readFile(new URL(`../../../drizzle/${file}`, import.meta.url), 'utf8')),
  )
  await fixture.sql.begin(async (tx) => {
    await tx.unsafe('create schema own; set local search_path to own')
    for (const text of texts) await tx.unsafe(text.replaceAll('"outbox', '"events'))
    await tx.unsafe('set local search_path to default; create table made_after ()')
  })
  const outbox = fixture.outbox({ publisher, schema: 'own', table: 'events' })
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await outbox.purge()
  const found = await fixture.store({ schema: 'own', table: 'events' }).partitions.find(0)
  expect(found).toEqual({ isOwner: true, missing: [], old: [] })
  expect(
    await fixture.sql`select schemaname from pg_tables where tablename = 'made_after'`,
  ).toEqual([{ schemaname: 'public' }])
})

it('is dropped, and made again, like any other table', async () => {
  const { schema } = await newTable({ days: 2 })
  await fixture.sql.unsafe(`drop table ${schema}.outbox, ${schema}.outbox_migrations`)
  const outbox = fixture.handling(handlers, { schema, migrate: 'partitioned' })
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  expect(await fixture.sql`select seq::int from ${fixture.sql(schema)}.outbox_before`).toEqual([
    { seq: 1 },
  ])
})
