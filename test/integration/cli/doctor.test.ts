// `aftercommit doctor` against prepared troubles: each is found, with its remedy, and so is nothing else.
import postgres from 'postgres'
import { afterEach, describe, expect, it } from 'vitest'
import { readCli, runCli } from '../../support/built-cli.ts'
import { useFixture } from '../../support/fixture.ts'
import { directUrl, openClient } from '../../support/servers/database.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { insertOldRows } from '../../support/old-rows.ts'
import { seed } from '../../support/seeded-events.ts'
import { seedInstance, type SeededInstance } from '../../support/seeded-instances.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'

const fixture = useFixture({ partitioned: false })

type Finding = { check: string; severity: string; message: string; remedy: string | null }
type Diagnosis = {
  ok: boolean
  findings: Finding[]
  skipped: { check: string; reason: string }[]
  checked: string[]
}
type Options = { url?: string; args?: string[]; env?: NodeJS.ProcessEnv }

async function examine({ url = fixture.url, args = [], env = {} }: Options = {}) {
  const { code, stdout, stderr } = await runCli(['doctor', '--json', ...args], { url, env })
  expect(stderr).toBe('')
  const diagnosis = JSON.parse(stdout) as Diagnosis
  expect(code).toBe(diagnosis.ok ? 0 : 3)
  return diagnosis
}

/** A schema of its own with the tables in it. */
async function prepare(name: string, partitioned = false): Promise<string[]> {
  await fixture.store({ schema: name }).migrate({ partitioned })
  return ['--schema', name]
}

const addInstance = (given: SeededInstance = {}) => seedInstance(fixture.sql, given)

afterEach(async () => {
  await fixture.sql`truncate outbox_pauses, outbox_instances`
})

it('finds nothing where all is well, and says what it checked', async () => {
  expect(await examine()).toEqual({
    ok: true,
    findings: [],
    skipped: [],
    checked: expect.arrayContaining(['schema', 'grants', 'vacuum', 'transactions', 'clock']),
  })
  const { code, stdout } = await runCli(['doctor'], { url: fixture.url })
  expect(code).toBe(0)
  expect(stdout).toMatch(/^no problems found; checked: grants, schema, /)
})

it('prints findings for people, with their remedy', async () => {
  await seed(fixture.sql, [{ status: 'dead_letter' }])
  const { code, stdout } = await runCli(['doctor'], { url: fixture.url })
  expect(code).toBe(3)
  expect(stdout).toContain('warning  dead letters: there is one dead letter (OrderPlaced: 1)')
  expect(stdout).toContain('remedy: aftercommit groups shows why')
})

describe('the schema', () => {
  it.each([
    [
      'a missing index',
      'drop index sick.outbox_due_idx',
      'the index outbox_due_idx is missing',
      'migrate --sql --all',
    ],
    [
      'an index that is not valid',
      "update pg_index set indisvalid = false where indexrelid = 'sick.outbox_lane_idx'::regclass",
      'outbox_lane_idx is not valid',
      'reindex index concurrently "sick"."outbox_lane_idx"',
    ],
    [
      'a missing function',
      'drop function sick.outbox_follows',
      'the function outbox_follows is missing',
      'migrate --sql --all',
    ],
    [
      'a missing table',
      'drop table sick.outbox_pauses',
      'the table outbox_pauses is missing',
      'migrate --sql --all',
    ],
    [
      'a migration that is not applied',
      "drop function sick.outbox_follows; delete from sick.outbox_migrations where name like '0001%'",
      'migrations are not applied: 0001_follows.sql',
      'aftercommit migrate',
    ],
    ['a missing column', 'alter table sick.outbox drop column worker_id', 'worker_id', 'migrate'],
  ])('%s is found', async (_, harm, message, remedy) => {
    const args = await prepare('sick')
    expect(await examine({ args })).toMatchObject({ ok: true })
    await fixture.sql.unsafe(harm)
    const { ok, findings } = await examine({ args })
    await fixture.sql`drop schema sick cascade`
    expect(ok).toBe(false)
    expect(findings).toContainEqual({
      check: 'schema',
      severity: 'error',
      message: expect.stringContaining(message),
      remedy: expect.stringContaining(remedy),
    })
  })

  it('without the table is an error, and what needs it is skipped', async () => {
    const { findings, skipped, checked } = await examine({ args: ['--table', 'nowhere'] })
    expect(findings).toMatchObject([{ check: 'schema', severity: 'error' }])
    expect(findings[0]!.message).toContain('"public"."nowhere"')
    expect(skipped).toContainEqual({ check: 'vacuum', reason: 'there is no table' })
    expect(checked).toContain('clock')
    const { stdout } = await runCli(['doctor', '--table', 'nowhere'], { url: fixture.url })
    expect(stdout).toMatch(/^skipped {2}grants, partitions, .*: there is no table$/m)
  })

  it('in migrations of their own is fine, if it is complete', async () => {
    const args = await prepare('own_migrations')
    await fixture.sql`drop table own_migrations.outbox_migrations`
    expect(await examine({ args })).toMatchObject({
      ok: true,
      findings: [{ severity: 'info', message: expect.stringContaining('migrations of your own') }],
    })
    await fixture.sql`drop index own_migrations.outbox_due_idx`
    expect(await examine({ args })).toMatchObject({ ok: false })
  })
})

describe('the role', () => {
  const role = uniqueName('app').replaceAll('-', '_')
  const urlOfRole = () => {
    const url = new URL(directUrl(fixture.url))
    url.username = role
    return url.href
  }

  it('lacks rights, and doctor says which to grant', async () => {
    await fixture.sql.unsafe(`create role ${role} login`)
    try {
      const args = await prepare('guarded')
      const before = await examine({ url: urlOfRole(), args })
      expect(before.findings).toContainEqual({
        check: 'grants',
        severity: 'error',
        message: `the role ${role} may not use the schema guarded`,
        remedy: `grant usage on schema "guarded" to "${role}"`,
      })
      expect(before.skipped.map(({ check }) => check)).toContain('dead letters')
      await fixture.sql.unsafe(`grant usage on schema guarded to ${role};
        grant select, insert on all tables in schema guarded to ${role}`)
      const { findings } = await examine({ url: urlOfRole(), args })
      const grants = findings.filter(({ check }) => check === 'grants')
      expect(grants.map(({ remedy }) => remedy)).toContain(
        `grant update, delete on "guarded"."outbox" to "${role}"`,
      )
    } finally {
      await fixture.sql.unsafe(`drop owned by ${role}; drop role ${role}`)
    }
  })
})

describe('a role with the rights of one purpose', () => {
  const role = uniqueName('relay').replaceAll('-', '_')
  const url = () => {
    const own = new URL(directUrl(fixture.url))
    own.username = role
    return own.href
  }
  const grants = async (args: string[]) => {
    const { findings } = await examine({ url: url(), args })
    return findings.filter(({ check }) => check === 'grants')
  }

  it('is no trouble, and doctor says if policies may hide rows from it', async () => {
    const args = await prepare('shared')
    await fixture.sql.unsafe(`create role ${role} login`)
    try {
      const { sql } = await readCli<{ sql: string }>(
        ['grants', role, '--for', 'relay', ...args],
        {},
      )
      await fixture.sql.unsafe(sql)
      expect(await grants(args)).toMatchObject([
        { severity: 'info', message: `the role ${role} has the rights for: relay, reader` },
      ])
      await fixture.sql.unsafe('alter table shared.outbox enable row level security')
      expect(await grants(args)).toMatchObject([
        {
          severity: 'warning',
          message: expect.stringContaining('row-level security applies'),
          remedy: expect.stringContaining(`create policy aftercommit on "shared"."outbox"`),
        },
        { severity: 'info' },
      ])
    } finally {
      await fixture.sql.unsafe(`drop owned by ${role}; drop role ${role}`)
    }
  })
})

describe('partitions', () => {
  it('of days to come are missing, and rows are in the default one', async () => {
    const args = await prepare('daily', true)
    const soon = await examine({ args })
    expect(soon.findings).toMatchObject([{ check: 'partitions', severity: 'warning' }])
    expect(soon.findings[0]!.message).toMatch(/no partition for \d{4}-\d\d-\d\d, \d{4}-/)
    expect(soon.findings[0]!.remedy).toContain('aftercommit purge')
    await runCli(['purge', '--older-than', '7d', '--yes', ...args], { url: fixture.url })
    expect(await examine({ args })).toMatchObject({ ok: true })
    const ahead = 'ffffffff-0000-7000-8000-000000000000'
    await seed(fixture.sql, [{ id: ahead, status: 'published' }], 'daily.outbox')
    const { findings } = await examine({ args })
    expect(findings).toMatchObject([{ check: 'partitions', severity: 'warning' }])
    expect(findings[0]!.message).toContain('outbox_default has rows (1)')
  })
})

describe('instances', () => {
  it('that were not seen lately, and settings that differ', async () => {
    await addInstance({ settings: { order: 'aggregate', retention: 1 } })
    await addInstance({ settings: { order: 'none', retention: 1 }, version: '0.2.0' })
    await addInstance({ seenSecondsAgo: 300 })
    await addInstance({ settings: { order: 'none', retention: 1, cleanup: false } })
    const { findings } = await examine()
    expect(findings).toMatchObject([
      { severity: 'warning', message: expect.stringContaining('was last seen 5 min ago') },
      { severity: 'warning', message: expect.stringContaining('differ in the setting order') },
      { severity: 'info', message: expect.stringContaining('0.1.0, 0.2.0') },
    ])
    expect(findings.every(({ check }) => check === 'instances')).toBe(true)
  })

  it('that are lost are no trouble once another one has taken their place', async () => {
    await addInstance({ seenSecondsAgo: 100, topics: ['orders'] })
    const alone = await examine()
    expect(alone.findings).toMatchObject([{ check: 'instances', severity: 'warning' }])
    expect(alone.findings[0]!.message).toContain('no running instance sends its events')
    // Not a replacement: it ran beside the lost one.
    await addInstance({ topics: ['orders'] })
    expect((await examine()).findings).toMatchObject([{ severity: 'warning' }])
    await addInstance({ topics: ['orders'], startedSecondsAgo: 50 })
    const replaced = await examine()
    expect(replaced).toMatchObject({ ok: true, findings: [{ severity: 'info' }] })
    expect(replaced.findings[0]!.message).toContain('another instance has started since')
    // One replacement stands for one that was lost.
    await addInstance({ seenSecondsAgo: 110, topics: ['orders'] })
    expect(await examine()).toMatchObject({ ok: false })
  })

  it('that are lost in numbers are one finding, with three names', async () => {
    await addInstance({ topics: ['orders'] })
    for (const n of [1, 2, 3, 4, 5]) {
      await addInstance({ workerId: `w${n}`, seenSecondsAgo: 100 + n, topics: ['orders'] })
    }
    const { findings } = await examine()
    expect(findings).toMatchObject([{ check: 'instances', severity: 'warning' }])
    expect(findings[0]!.message).toMatch(
      /^5 instances were lost, the last one 1 min ago: w1 .*, w2 .*, w3 .* and 2 more; other instances send/,
    )
  })

  it('that were replaced stay so when their replacement is lost', async () => {
    const orders = { topics: ['orders'], startedSecondsAgo: 3_000 }
    await addInstance(orders)
    await addInstance({ ...orders, workerId: 'first', seenSecondsAgo: 400 })
    await addInstance({
      ...orders,
      workerId: 'second',
      startedSecondsAgo: 390,
      seenSecondsAgo: 100,
    })
    await addInstance({ ...orders, workerId: 'third', startedSecondsAgo: 90 })
    expect(await examine()).toMatchObject({ ok: true, findings: [{ severity: 'info' }] })
  })

  it('come after errors, which are first', async () => {
    await addInstance({ seenSecondsAgo: 100, topics: ['carts'] })
    await addInstance({ topics: ['carts'] })
    await seed(fixture.sql, [{ topic: 'orders' }])
    const { findings } = await examine()
    expect(findings.map(({ check, severity }) => [check, severity])).toEqual([
      ['waiting events', 'error'],
      ['instances', 'warning'],
    ])
  })

  it('that are lost are no trouble after ten minutes, if others do their work', async () => {
    await addInstance({ seenSecondsAgo: 700, topics: ['orders'] })
    await addInstance({ topics: ['carts'] })
    expect(await examine()).toMatchObject({ ok: false })
    await addInstance({ topics: ['orders'], poller: false })
    expect(await examine()).toMatchObject({ ok: false })
    await addInstance({ topics: ['orders', 'carts'] })
    expect(await examine()).toMatchObject({ ok: true, findings: [{ severity: 'info' }] })
  })
})

describe('circuits', () => {
  const down = (topic: string | null, forMs: number) => ({
    circuits: [{ publisher: 'kafka', topic, forMs, error: 'Error: ECONNREFUSED' }],
  })

  it('that are open are found once for each destination, in running instances only', async () => {
    await addInstance({ workerId: 'a', report: down('orders', 30_000) })
    await addInstance({ workerId: 'b', report: down('orders', 600_000) })
    await addInstance({ workerId: 'c', report: down(null, 5_000) })
    await addInstance({ workerId: 'lost', seenSecondsAgo: 900, report: down('carts', 9) })
    await seed(fixture.sql, [{ topic: 'orders' }])
    await addInstance({ workerId: 'd', report: down('ordres', 9_000) })
    const { ok, findings } = await examine()
    const circuits = findings.filter(({ check }) => check === 'circuits')
    expect(ok).toBe(false)
    expect(circuits).toEqual([
      {
        check: 'circuits',
        kind: 'circuit',
        severity: 'error',
        message:
          "the topic 'orders' of the publisher 'kafka' has been out of reach for 10 min in 2 of 4 running instances: Error: ECONNREFUSED",
        remedy: expect.stringContaining('the backlog drains by itself'),
      },
      {
        check: 'circuits',
        kind: 'circuit',
        severity: 'error',
        message: expect.stringMatching(
          /^the broker of the publisher 'kafka' .* for \d+ s in 1 of 4 running instances: Error/,
        ),
        remedy: expect.any(String),
      },
      {
        check: 'circuits',
        severity: 'info',
        message: expect.stringMatching(/'ordres' .* nothing waits for it any more/),
        remedy: null,
      },
    ])
  })
})

describe('history', () => {
  const week = { retention: 7 * 86_400_000 }

  it('past its retention that no instance deletes', async () => {
    await insertOldRows(fixture.sql, { count: 12, status: 'published', days: 9 })
    expect(await examine()).toMatchObject({ ok: true })
    await addInstance({ settings: { ...week, cleanup: false } })
    const { findings } = await examine()
    expect(findings).toMatchObject([{ check: 'history', severity: 'warning' }])
    expect(findings[0]!.message).toBe(
      '12 published events are past the retention of 7 d, and no running instance cleans up',
    )
    expect(findings[0]!.remedy).toContain('aftercommit purge --older-than 7d')
    expect(findings[0]!.remedy).toContain("the option 'cleanup'")
    // The longest retention counts.
    await addInstance({ settings: { retention: 30 * 86_400_000, cleanup: false } })
    expect((await examine()).findings).toMatchObject([{ check: 'instances' }])
  })

  it('past its retention by a day although an instance cleans up', async () => {
    await addInstance({ settings: { ...week, cleanup: true } })
    await insertOldRows(fixture.sql, { count: 1, status: 'published', days: 7 })
    expect(await examine()).toMatchObject({ ok: true })
    await insertOldRows(fixture.sql, { count: 1, status: 'published', days: 9 })
    const { findings } = await examine()
    expect(findings).toMatchObject([{ check: 'history', severity: 'warning' }])
    expect(findings[0]!.message).toContain('the cleanup does not keep up')
  })
})

describe('events', () => {
  it('that no instance sends', async () => {
    await seed(fixture.sql, [{ topic: 'orders' }, { topic: 'orders' }, { topic: 'carts' }])
    const alone = await examine()
    expect(alone.findings).toMatchObject([
      {
        severity: 'error',
        message: expect.stringContaining("1 event is due for the topic 'carts'"),
      },
      {
        severity: 'error',
        message: expect.stringContaining("2 events are due for the topic 'orders'"),
      },
    ])
    expect(alone.findings[0]!.remedy).toContain(
      'aftercommit relay with your publishers, handlers included',
    )
    await addInstance({ topics: ['carts'] })
    const { findings } = await examine()
    expect(findings).toHaveLength(1)
    expect(findings[0]!.message).toContain("'orders', which no running instance publishes")
    await addInstance({ topics: null })
    expect(await examine()).toMatchObject({ ok: true })
  })

  it('that rest, and no instance runs', async () => {
    await seed(fixture.sql, [{ status: 'failed', attempts: 1, dueInSeconds: 600 }])
    const { findings } = await examine()
    expect(findings).toMatchObject([{ check: 'waiting events', severity: 'error' }])
    expect(findings[0]!.message).toBe('1 event waits, and no instance runs')
    await addInstance({})
    expect(await examine()).toMatchObject({ ok: true })
  })

  it('that have waited for long, are paused or are dead', async () => {
    await addInstance({})
    await seed(fixture.sql, [{ secondsAgo: 90 }, { status: 'dead_letter', type: 'OrderPaid' }])
    await fixture.sql`insert into outbox_pauses (topic, paused_by, reason) values ('orders', 'ada', 'moving')`
    const { findings } = await examine()
    expect(findings.map(({ message }) => message)).toEqual([
      'the oldest unsent event has waited for 1 min',
      expect.stringMatching(/^the topic 'orders' is paused by ada \(moving\), for /),
      'there is one dead letter (OrderPaid: 1)',
    ])
    expect(findings[1]!.remedy).toContain("aftercommit resume 'orders'")
  })
})

it('finds an old transaction, and shows its statement only on request', async () => {
  const forgotten = postgres(directUrl(fixture.url), {
    max: 1,
    connection: { application_name: 'a forgotten report' },
  })
  const held = await forgotten.reserve()
  await held`begin`
  const [{ pid }] = (await held`select pg_backend_pid() as pid, 'secret' as data`) as [
    { pid: number },
  ]
  const args = ['--old-transaction', '1ms']
  try {
    const { findings } = await examine({ args })
    expect(findings).toMatchObject([{ check: 'transactions', severity: 'warning' }])
    expect(findings[0]!.message).toContain(
      `by pid ${pid} (role postgres, application a forgotten report`,
    )
    expect(findings[0]!.message).not.toContain('secret')
    expect(findings[0]!.remedy).toContain(`pg_terminate_backend(${pid})`)
    const shown = await examine({ args: [...args, '--show-queries'] })
    expect(shown.findings[0]!.message).toContain("'secret' as data")
    expect(await examine()).toMatchObject({ ok: true })
  } finally {
    await held`rollback`
    held.release()
    await forgotten.end()
  }
})

it('finds a replication slot that no consumer reads, and a server without autovacuum', async () => {
  const server = await startPostgres()
  const sql = postgres(server.url, { onnotice: () => {} })
  try {
    await runCli(['migrate'], { url: server.url })
    expect(await examine({ url: server.url })).toMatchObject({ ok: true })
    await sql`select pg_create_physical_replication_slot('forgotten', true)`
    await sql.unsafe('alter system set autovacuum = off')
    await sql`select pg_reload_conf()`
    await expect
      .poll(async () => (await examine({ url: server.url })).findings, { timeout: 30_000 })
      .toMatchObject([
        { check: 'vacuum', severity: 'error', remedy: expect.stringContaining('autovacuum = on') },
        {
          check: 'replication slots',
          severity: 'warning',
          message: expect.stringContaining('forgotten, which no consumer reads, holds'),
          remedy: expect.stringContaining("pg_drop_replication_slot('forgotten')"),
        },
      ])
  } finally {
    await sql.end()
    await server.stop()
  }
})

it('finds autovacuum switched off for the table, and dead rows', async () => {
  const args = await prepare('bloated')
  await fixture.sql.unsafe('alter table bloated.outbox set (autovacuum_enabled = false)')
  const { findings } = await examine({ args })
  expect(findings).toMatchObject([
    {
      check: 'vacuum',
      severity: 'error',
      remedy: 'alter table "bloated"."outbox" reset (autovacuum_enabled)',
    },
  ])
  // The server counts what a session did when that ends.
  const writer = openClient(directUrl(fixture.url), { max: 1 })
  await writer.unsafe(`insert into bloated.outbox (id, lane, aggregate_type, aggregate_id, event_type, topic,
      payload, headers, status, max_attempts, available_at, occurred_at, published_at)
    select gen_random_uuid(), n, 'order', n, 'OrderPlaced', 'orders', '1', '{}', 'published', 10, now(), now(), now()
    from generate_series(1, 60000) n; update bloated.outbox set updated_at = now()`)
  await writer.end()
  const found = (remedy: unknown) => ({
    check: 'vacuum',
    severity: 'warning',
    message: expect.stringMatching(/outbox has about \d+ dead rows/),
    remedy,
  })
  await expect
    .poll(async () => (await examine({ args })).findings, { timeout: 30_000 })
    .toContainEqual(
      found(expect.stringMatching(/^vacuum \(analyze\) "bloated"."outbox" now; autovacuum is off/)),
    )
  // The oldest transaction is named, however young it is.
  const forgotten = postgres(directUrl(fixture.url), {
    max: 1,
    connection: { application_name: 'a forgotten report' },
  })
  const held = await forgotten.reserve()
  await held`begin`
  const [{ pid }] = (await held`select pg_backend_pid() as pid`) as [{ pid: number }]
  const { findings: named } = await examine({ args })
  await held`rollback`
  held.release()
  await forgotten.end()
  expect(named.map(({ check }) => check)).not.toContain('transactions')
  expect(named).toContainEqual(
    found(
      expect.stringMatching(
        new RegExp(
          `the oldest transaction, open for .* by pid ${pid} .*a forgotten report.*pg_terminate_backend`,
        ),
      ),
    ),
  )
})

it('finds a clock that is off', async () => {
  const shift = 'const now=Date.now;Date.now=()=>now()+90000'.replaceAll(' ', '%20')
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${shift}` }
  const { findings } = await examine({ env })
  expect(findings).toMatchObject([
    { check: 'clock', severity: 'warning', message: expect.stringContaining('1 min ahead of') },
  ])
})
