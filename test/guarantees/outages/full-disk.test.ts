// The disk of Postgres is full: that of the table, and that of the WAL. Units of work fail with an error that says so, or
// commit; nothing is lost, and it all goes on by itself when there is room.
import type postgres from 'postgres'
import { afterEach, describe, expect, inject, it } from 'vitest'
import { drizzleOnNodePostgres } from '../../support/drivers.ts'
import { ALL_AGREE, startNumbered } from '../../support/numbered-units.ts'
import { openClient } from '../../support/servers/database.ts'
import { type PostgresOptions, startPostgres } from '../../support/servers/postgres-server.ts'
import { mountSmallDisk, type SmallDisk } from '../../support/servers/small-disk.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

async function mountDisk(megabytes: number): Promise<SmallDisk> {
  const disk = await mountSmallDisk(megabytes)
  closing.push(() => disk.stop())
  return disk
}

async function startServer(options: PostgresOptions = {}) {
  const server = await startPostgres(options)
  closing.push(() => server.stop())
  const sql = openClient(server.url, { max: 1, backoff: () => 0.05, connect_timeout: 3 })
  closing.push(() => sql.end({ timeout: 0 }))
  return { server, sql }
}

async function startUnits(url: string, sql: postgres.Sql) {
  const units = await startNumbered({ url, sql, driver: drizzleOnNodePostgres })
  closing.push(() => units.stop())
  await units.insist()
  return units
}

describe.skipIf(inject('diskMissing') !== null)('a full disk', () => {
  it('fails units of work clearly while the table cannot grow, and keeps what was committed', async () => {
    const disk = await mountDisk(8)
    const { server, sql } = await startServer()
    await sql.unsafe(`create tablespace small location '${disk.path}'`)
    await sql`alter role postgres set default_tablespace = small`
    const units = await startUnits(server.url, sql)
    await disk.fill()
    const refusal = await waitUntil(() => units.write(), { message: 'a unit of work is refused' })
    expect(refusal).toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringContaining('No space left on device') as string,
      cause: expect.objectContaining({ code: '53100' }) as unknown,
    })
    await disk.free()
    expect(await units.settle()).toEqual(ALL_AGREE)
  })

  it('loses nothing when the WAL cannot grow, which crashes Postgres', async () => {
    const disk = await mountDisk(12)
    // No checkpoint makes room meanwhile.
    const settings = { min_wal_size: '2MB', max_wal_size: '1GB', checkpoint_timeout: '1h' }
    const { server, sql } = await startServer({ walFolder: `${disk.path}/wal`, settings })
    const units = await startUnits(server.url, sql)
    await disk.fill()
    const isRefused = async () => {
      await sql`select pg_logical_emit_message(false, 'fills', repeat('x', 100000))`.catch(() => {})
      return await units.write()
    }
    await waitUntil(isRefused, { message: 'a unit of work fails' })
    await disk.free()
    // It may come back by itself, with the room that its recovery makes, or end for good.
    const isBack = async () => {
      await server.start()
      return (await units.write()) === null
    }
    await waitUntil(isBack, { message: 'a unit of work commits again' })
    expect(await units.settle()).toEqual(ALL_AGREE)
  })
})
