// Where the CLI has to make do: with a role that may only read, and behind PgBouncer in transaction mode.
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { readCli, runCli } from '../../support/built-cli.ts'
import { useFixture } from '../../support/fixture.ts'
import { directUrl } from '../../support/servers/database.ts'
import { type PgBouncer, startPgBouncer } from '../../support/servers/pgbouncer.ts'
import { seed } from '../../support/seeded-events.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'

const fixture = useFixture({ partitioned: false })

/** Commands that only read, and the code with which each ends on a table with a dead letter. */
const READING: [args: string[], code: number][] = [
  [['status'], 3],
  [['status', '--max-dead', '5'], 0],
  [['list'], 0],
  [['list', '--status', 'dead_letter'], 0],
  [['groups'], 0],
  [['instances'], 0],
  [['purge', '--older-than', '7d', '--dry-run'], 0],
  [['doctor'], 3],
  [['migrate', '--sql'], 0],
]

describe('with a role that may only read', () => {
  const role = uniqueName('reader').replaceAll('-', '_')
  let url: string

  beforeAll(async () => {
    await fixture.sql.unsafe(`create role ${role} login password 'reads-only';
      grant usage on schema public to ${role};
      grant select on outbox, outbox_migrations, outbox_pauses, outbox_instances to ${role}`)
    const own = new URL(directUrl(fixture.url))
    own.username = role
    own.password = 'reads-only'
    url = own.href
  })
  afterAll(() => fixture.sql.unsafe(`drop owned by ${role}; drop role ${role}`))

  it.each(READING)('%j works', async (args, code) => {
    await seed(fixture.sql, [{ status: 'dead_letter', error: 'refused' }, { status: 'published' }])
    expect(await readCli(args, { url }, code)).toBeTypeOf('object')
  })

  it('show works', async () => {
    const [id] = await seed(fixture.sql, [{}])
    expect(await readCli(['show', id!], { url })).toMatchObject({ id })
  })

  it('doctor asks for no more than the right to read', async () => {
    await fixture.sql.unsafe(`revoke select on outbox_pauses from ${role}`)
    try {
      const { findings } = await readCli<{ findings: object[] }>(['doctor'], { url }, 3)
      expect(findings).toContainEqual({
        check: 'grants',
        severity: 'error',
        message: `the role ${role} may not read outbox_pauses`,
        remedy: `grant select on "public"."outbox_pauses" to "${role}"`,
      })
    } finally {
      await fixture.sql.unsafe(`grant select on outbox_pauses to ${role}`)
    }
  })

  it('doctor says what it could not see, and does not call reading a trouble', async () => {
    const found = await readCli<{
      findings: { check: string; severity: string }[]
      skipped: { check: string; reason: string }[]
    }>(['doctor'], { url })
    expect(found).toMatchObject({
      ok: true,
      findings: [
        {
          check: 'grants',
          severity: 'info',
          remedy: expect.stringContaining('use the role of the application'),
        },
      ],
      skipped: [{ check: 'transactions', reason: expect.stringContaining('pg_read_all_stats') }],
    })
  })

  it.each([
    [['retry', '--all']],
    [['discard', '--all', '--yes']],
    [['pause', 'orders']],
    [['resume', 'orders']],
    [['purge', '--older-than', '1s', '--yes']],
    [['migrate', '--partitioned']],
  ])('%j fails and says that the role may not', async (args) => {
    await seed(fixture.sql, [{ status: 'dead_letter' }, { status: 'published', secondsAgo: 60 }])
    const { code, stderr } = await runCli(args, { url })
    expect(code).toBe(1)
    expect(stderr).toContain('use a role that may')
    expect(stderr).not.toContain('reads-only')
  })
})

describe.skipIf(inject('pgbouncerMissing') !== null)('behind PgBouncer', () => {
  let bouncer: PgBouncer
  let url: string
  let direct: postgres.Sql

  beforeAll(async () => {
    bouncer = await startPgBouncer(inject('directDatabaseUrl'), 2)
    direct = postgres(directUrl(fixture.url), { onnotice: () => {} })
    const pooled = new URL(bouncer.pooled(directUrl(fixture.url)))
    // The CLI must see to that itself.
    pooled.searchParams.delete('prepare')
    url = pooled.href
  })
  afterAll(async () => {
    await direct.end()
    await bouncer.stop()
  })

  it.each(READING)('%j works', async (args, code) => {
    await seed(direct, [{ status: 'dead_letter', error: 'refused' }, { status: 'published' }])
    expect(await readCli(args, { url }, code)).toBeTypeOf('object')
  })

  it('changes work', async () => {
    await seed(direct, [{ status: 'dead_letter' }, { status: 'dead_letter', topic: 'carts' }])
    expect(await readCli(['migrate'], { url })).toEqual({ applied: [] })
    expect(await readCli(['migrate', '--schema', 'pooled'], { url })).not.toEqual({ applied: [] })
    expect(await readCli(['pause', 'carts'], { url })).toMatchObject({ paused: true })
    expect(await readCli(['resume', 'carts'], { url })).toMatchObject({ resumed: true })
    expect(await readCli(['retry', '--topic', 'carts'], { url })).toEqual({ retried: 1 })
    expect(await readCli(['discard', '--all', '--yes'], { url })).toEqual({ discarded: 1 })
    await direct`update outbox set status = 'published', published_at = now() - interval '1 min'`
    expect(await readCli(['purge', '--older-than', '1s', '--yes'], { url })).toEqual({ deleted: 1 })
    expect(await direct`select from outbox`).toHaveLength(0)
  })
})
