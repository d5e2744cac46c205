// A session that locks the table does not make the CLI hang: it says which session it is, and how to end it.
import postgres from 'postgres'
import { describe, expect, inject, it } from 'vitest'
import { runCli } from '../../support/built-cli.ts'
import { useFixture } from '../../support/fixture.ts'
import { directUrl } from '../../support/servers/database.ts'
import { startPgBouncer } from '../../support/servers/pgbouncer.ts'
import { seed } from '../../support/seeded-events.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture({ partitioned: false })
const ID = '019c0f5e-7b4a-7000-8000-000000000000'
const SECRET = 'the-literal-is-secret'

/** Runs the work while a migration that was never committed locks the table. */
async function whileLocked<T>(work: (pid: number) => Promise<T>, lock = ALTER): Promise<T> {
  const connection = { application_name: 'a forgotten migration' }
  const client = postgres(directUrl(fixture.url), { max: 1, connection, onnotice: () => {} })
  const session = await client.reserve()
  try {
    const [{ pid }] = (await session`select pg_backend_pid() as pid`) as [{ pid: number }]
    await session`begin`
    await session.unsafe(lock)
    return await work(pid)
  } finally {
    await session`rollback`
    session.release()
    await client.end()
  }
}

const ALTER = `alter table outbox add column note text default '${SECRET}'`

type Diagnosis = {
  ok: boolean
  checked: string[]
  findings: { check: string; severity: string; message: string; remedy: string }[]
  skipped: { check: string; reason: string }[]
}

const examine = async () => {
  const { code, stdout, stderr } = await runCli(['doctor', '--json'], { url: fixture.url })
  expect({ code, stderr }).toEqual({ code: 3, stderr: '' })
  return JSON.parse(stdout) as Diagnosis
}

describe('a table that another session has locked', () => {
  it.each([[['status']], [['list']], [['show', ID]], [['groups']], [['tail']], [['retry', ID]]])(
    'is reported by %j, with the session to end',
    async (args) => {
      await whileLocked(async (pid) => {
        const { code, stdout, stderr } = await runCli(args, { url: fixture.url })
        expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
        expect(stderr).toContain(`by pid ${pid} (role postgres, application a forgotten migration`)
        expect(stderr).toContain('idle in transaction, statement: alter table outbox ...')
        expect(stderr).toContain(`select pg_terminate_backend(${pid})`)
        expect(stderr).not.toContain(SECRET)
      })
    },
  )

  it('is a finding of doctor, which makes the checks that do not need the table', async () => {
    await whileLocked(async (pid) => {
      const { findings, skipped, checked } = await examine()
      expect(findings).toMatchObject([{ check: 'locks', severity: 'error' }])
      expect(findings[0]!.message).toContain(`by pid ${pid} (role postgres`)
      expect(findings[0]!.message).not.toContain(SECRET)
      expect(findings[0]!.remedy).toContain(`select pg_terminate_backend(${pid})`)
      expect(checked).toEqual(
        expect.arrayContaining(['grants', 'instances', 'pauses', 'transactions', 'clock']),
      )
      expect(skipped.map(({ check }) => check)).toContain('dead letters')
    })
    const { stdout } = await runCli(['doctor', '--json'], { url: fixture.url })
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, findings: [], skipped: [] })
  })

  it('is put down to the session at the head of the queue, not to one that waits itself', async () => {
    const waiting = postgres(directUrl(fixture.url), { max: 1, onnotice: () => {} })
    // Of this database: other tests share the server.
    const waiters = async () => {
      const rows = await fixture.sql<{ pid: number }[]>`
        select pid from pg_locks join pg_database d on d.oid = database
        where d.datname = current_database() and not granted and mode = 'AccessExclusiveLock'`
      return rows.map(({ pid }) => pid)
    }
    let locked: Promise<unknown> = Promise.resolve()
    await whileLocked(async (pid) => {
      locked = waiting.begin((tx) => tx`lock table outbox`)
      await waitUntil(async () => (await waiters()).length > 0, {
        message: 'the second session waits',
      })
      const { findings } = await examine()
      expect(findings).toHaveLength(1)
      expect(findings[0]!.message).toContain(`pid ${pid} `)
      const [waiter] = await waiters()
      expect(findings[0]!.message).toContain(`pid ${waiter} (role postgres`)
      expect(findings[0]!.message).toContain(
        'statement: lock table outbox ...) waits to lock the table',
      )
      expect(findings[0]!.remedy).toContain(`select pg_cancel_backend(${waiter})`)
      const { stderr } = await runCli(['status', '--json'], { url: fixture.url })
      expect(JSON.parse(stderr)).toMatchObject({
        error: {
          code: 'LOCKED',
          message: expect.stringContaining(`select pg_terminate_backend(${pid})`),
        },
      })
    }, 'select from outbox')
    await locked
    await waiting.end()
  })

  it.skipIf(inject('pgbouncerMissing') !== null)('is reported behind PgBouncer', async () => {
    await seed(fixture.sql, [{}])
    const bouncer = await startPgBouncer(inject('directDatabaseUrl'), 2)
    try {
      const pooled = new URL(bouncer.pooled(directUrl(fixture.url)))
      pooled.searchParams.delete('prepare')
      await whileLocked(async (pid) => {
        const { code, stderr } = await runCli(['status'], { url: pooled.href })
        expect(code).toBe(1)
        expect(stderr).toContain(`select pg_terminate_backend(${pid})`)
      })
      // The time limit does not stay behind in a session that others use next.
      const client = postgres(pooled.href, { prepare: false })
      expect(await client`show lock_timeout`).toMatchObject([{ lock_timeout: '0' }])
      await client.end()
    } finally {
      await bouncer.stop()
    }
  })
})
