// What Postgres does to sessions: none is left, statements and locks time out, idle transactions are ended, a backend is
// killed. Units of work fail with an error that says so, or commit; nothing is lost, and it all goes on by itself.
import type postgres from 'postgres'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import {
  drizzleOnNodePostgres,
  drizzleOnPostgresJs,
  SERVED_DRIVERS,
} from '../../support/drivers.ts'
import { ALL_AGREE, type NumberedUnits, startNumbered } from '../../support/numbered-units.ts'
import { openClient } from '../../support/servers/database.ts'
import { type PostgresServer, startPostgres } from '../../support/servers/postgres-server.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const SESSIONS = 20
const STACKS = [drizzleOnPostgresJs, drizzleOnNodePostgres]

let server: PostgresServer
let sql: postgres.Sql
let units: NumberedUnits | undefined
beforeAll(async () => {
  const settings = { max_connections: String(SESSIONS), superuser_reserved_connections: '0' }
  server = await startPostgres({ settings })
  sql = openClient(server.url, { max: 2, backoff: () => 0.05, connect_timeout: 3 })
})
afterEach(async () => {
  await units?.stop()
  units = undefined
  await sql`alter role postgres reset all`
})
afterAll(async () => {
  await sql.end({ timeout: 0 })
  await server.stop()
})

/** The SQLSTATE somewhere among the causes of an error. */
function stateOf(error: unknown): string | undefined {
  for (let one = error; one instanceof Error; one = one.cause) {
    const { code } = one as { code?: string }
    if (code && /^[0-9A-Z]{5}$/.test(code)) return code
  }
  return undefined
}

/** Takes every session that is free. Returns what gives them back. */
async function takeAll(): Promise<() => Promise<unknown>> {
  const taken = Array.from({ length: SESSIONS }, () => openClient(server.url, { max: 1 }))
  await Promise.all(taken.map((one) => one`select`.catch(() => null)))
  return () => Promise.all(taken.map((one) => one.end({ timeout: 0 })))
}

/** The sessions in which the outbox has worked. */
const ownSessions = () => sql<{ pid: number }[]>`
  select pid from pg_stat_activity where query like '/* aftercommit:%' and pid <> pg_backend_pid()`

/** One of them. A session's last statement may for a moment be a unit's own, and a restarting Postgres has none. */
async function anOwnSession(): Promise<number> {
  let found: { pid: number } | undefined
  const isFound = async () => {
    ;[found] = await ownSessions().catch(() => [])
    return found !== undefined
  }
  await waitUntil(isFound, { message: 'Postgres is up, and the outbox works in a session' })
  return found!.pid
}

describe.each(STACKS.map((driver) => [driver.name, driver] as const))('on %s', (_, driver) => {
  it('goes on when there are sessions again', async () => {
    units = await startNumbered({ url: server.url, sql, driver })
    await units.insist()
    let pollError: Error | undefined
    units.outbox.events.on('error', ({ error }) => {
      if (stateOf(error) === '53300') pollError = error
    })
    const givesBack: (() => Promise<unknown>)[] = []
    // Again and again: a session in which only a unit of work ran is not known as the outbox's until it has polled.
    const areRefused = async () => {
      givesBack.push(await takeAll())
      await sql`select pg_terminate_backend(pid) from pg_stat_activity
        where pid = any(${(await ownSessions()).map(({ pid }) => pid)})`
      givesBack.push(await takeAll())
      return stateOf(await units!.write()) === '53300' && pollError !== undefined
    }
    try {
      await waitUntil(areRefused, { message: 'neither units of work nor polls find a session' })
      expect(pollError?.message).toMatch(/too many clients/)
    } finally {
      await Promise.all(givesBack.map((giveBack) => giveBack()))
    }
    expect(await units.settle()).toEqual(ALL_AGREE)
  })

  it.each([
    ['statement_timeout', 'STORE_TIMEOUT', '57014', /statement timeout/],
    ['lock_timeout', 'STORE_FAILED', '55P03', /lock timeout/],
  ])('goes on after a %s, when the table is free again', async (setting, code, state, message) => {
    // Long enough for the migrations of a busy machine, which have this limit too.
    await sql.unsafe(`alter role postgres set ${setting} = '2s'`)
    units = await startNumbered({ url: server.url, sql, driver })
    await units.insist()
    const { events } = units.outbox
    const polling = nextEvent(events, 'error', ({ step, error }) => {
      return step === 'poll' && stateOf(error) === state
    })
    await sql.begin(async (tx) => {
      await tx`set local statement_timeout = 0`
      await tx`lock table ${tx(units!.table)} in access exclusive mode`
      const error = await units!.write()
      expect(error).toMatchObject({ code, message: expect.stringMatching(message) as string })
      expect(stateOf(error)).toBe(state)
      expect((await polling).error).toMatchObject({ code })
    })
    expect(await units.settle()).toEqual(ALL_AGREE)
  })

  it('goes on after one of its backends was killed, and Postgres recovered', async () => {
    units = await startNumbered({ url: server.url, sql, driver })
    await units.insist()
    for (let round = 0; round < 2; round += 1) {
      process.kill(await anOwnSession(), 'SIGKILL')
      await units.insist()
    }
    expect(await units.settle()).toEqual(ALL_AGREE)
  })
})

it.each(SERVED_DRIVERS.map((driver) => [driver.name, driver] as const))(
  'fails a unit of work that is idle for too long, and goes on (%s)',
  async (_, driver) => {
    units = await startNumbered({ url: server.url, sql, driver })
    await units.insist()
    const error = await units.write(async (tx) => {
      const [own] = await driver.query(tx, 'select pg_backend_pid() as pid')
      await driver.query(tx, `set local idle_in_transaction_session_timeout = '100ms'`)
      const isGone = async () =>
        (await sql`select from pg_stat_activity where pid = ${own!['pid'] as number}`).length === 0
      await waitUntil(isGone, { message: 'Postgres has ended the session' })
    })
    expect(error).toBeInstanceOf(Error)
    expect(await units.settle()).toEqual(ALL_AGREE)
  },
)
