// Promise: instances can switch to relay: 'cdc' and back one by one, under load. Nothing is lost and nothing is sent twice. A
// worker of Kafka Connect that dies goes on where it had noted its place, and doctor and health() see one that is away.
import { expect, it } from 'vitest'
import { sourceOf } from '../../../src/dashboard/source.ts'
import { diagnose } from '../../../src/upkeep/doctor/doctor.ts'
import { doctorParts } from '../../../src/upkeep/doctor/parts.ts'
import { describeWithConnector, useCdc } from '../../support/cdc/use-cdc.ts'
import { isFromConnector } from '../../support/cdc/compared-relays.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { firstArrivals, type Load, startLoad } from '../../support/load.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const UNITS = 40
const MB = 2 ** 20

const countOf = ({ committed }: Load) =>
  [...committed.values()].reduce((sum, numbers) => sum + numbers.length, 0)

async function examine(outbox: unknown) {
  const settings = { oldTransactionMs: 3_600_000, showQueries: false }
  const { findings } = await diagnose(doctorParts(sourceOf(outbox), settings))
  return findings.filter(({ check }) => check === 'cdc' || check === 'replication slots')
}

describeWithConnector('a connector under load', () => {
  const cdc = useCdc()

  it('takes over from the library and back, and nothing is lost or sent twice', async () => {
    const { topic, reader } = await cdc.topic()
    // Without a fallback, so that it leaves what the killed instance had.
    const first = cdc.stack.ownOutbox({ topic, poller: false })
    const connected = cdc.stack.cdcOutbox({ topic })
    const last = cdc.stack.ownOutbox({ topic })
    // Like an instance that is killed with everything in its hands: it sends nothing.
    const killed = cdc.stack.ownOutbox({ topic })
    await Promise.all([first.start(), connected.start()])
    // The load commits through each of these in turn.
    const running = [first]
    const load = startLoad(running, uniqueName('switch'))
    await load.commits(UNITS)
    running.push(connected, killed)
    await load.commits(UNITS)
    running.splice(0, running.length, connected)
    // Units of work that had begun with the first one have ended by then.
    await load.commits(UNITS)
    await first.stop()
    await load.commits(UNITS)
    expect((await connected.stats()).pending.count).toBeGreaterThan(0)
    await last.start()
    running.push(last)
    await load.commits(UNITS)
    running.shift()
    await load.commits(UNITS)
    await load.stop()
    const count = countOf(load)
    await reader.waitForCount(count)
    await waitUntil(async () => (await last.stats()).pending.count === 0, { message: 'all sent' })
    await reader.readToEnd()
    expect(reader.messages).toHaveLength(count)
    expect(new Set(reader.messages.map(({ headers }) => headers['event-id'])).size).toBe(count)
    const arrived = firstArrivals(reader.messages)
    for (const [aggregate, numbers] of load.committed) {
      expect(arrived.get(aggregate)?.toSorted((a, b) => a - b)).toEqual(numbers)
    }
    const byConnector = reader.messages.filter(isFromConnector).length
    expect(byConnector).toBeGreaterThan(UNITS)
    expect(count - byConnector).toBeGreaterThan(UNITS)
  })

  it('goes on after its worker was killed: everything arrives, in order, copies with the same id', async () => {
    const { topic, reader } = await cdc.topic()
    const outbox = cdc.stack.cdcOutbox({ topic })
    await outbox.start()
    const load = startLoad([outbox], uniqueName('killed'))
    await load.commits(UNITS)
    await reader.waitForCount(1)
    await cdc.stack.connect.kill()
    await load.commits(UNITS)
    await cdc.stack.startConnector()
    await load.commits(UNITS)
    await load.stop()
    const ids = () => new Set(reader.messages.map(({ headers }) => headers['event-id']))
    await waitUntil(() => ids().size === countOf(load), {
      message: () => `${ids().size} of ${countOf(load)} have arrived`,
    })
    expect(firstArrivals(reader.messages)).toEqual(load.committed)
  })

  it('is seen by doctor and health() when no worker reads the slot, and when one is behind', async () => {
    const { topic, reader } = await cdc.topic()
    const { sql, connect, slot } = cdc.stack
    const outbox = cdc.stack.cdcOutbox({ topic })
    await outbox.start()
    const flags = async (maxSlotBytes?: number) => {
      const limits = maxSlotBytes === undefined ? {} : { maxSlotBytes }
      return (await outbox.health(limits)).flags.map(({ message }) => message)
    }
    expect(await flags()).toEqual([])
    expect(await examine(outbox)).toEqual([])

    connect.pause()
    await sql`create table ballast as select repeat(n::text, 100) as text from generate_series(1, 20000) n`
    await outbox.withOutbox((_, emit) => emit(newEvent()))
    expect(await flags(1_000_000)).toEqual([
      expect.stringMatching(`^the connector on the replication slot ${slot} is .* behind$`),
    ])
    connect.resume()
    await reader.waitForCount(1)
    await waitUntil(async () => (await flags(1_000_000)).length === 0, { message: 'caught up' })

    await connect.stop()
    await waitUntil(async () => !(await cdc.stack.isSlotActive()), { message: 'slot released' })
    const away = expect.stringContaining(
      `no connector reads the replication slot ${slot}, which is`,
    )
    expect(await flags()).toEqual([away])
    expect(await examine(outbox)).toEqual([
      expect.objectContaining({ check: 'cdc', severity: 'error', message: away }),
    ])
    expect((await outbox.stats()).pending.count).toBe(0)

    await cdc.stack.startConnector()
    expect(await flags()).toEqual([])
    await sql`drop table ballast`
  })

  it('is said to be as far behind as the server wrote, and when the server is about to give up its slot', async () => {
    const { sql, connect, slot } = cdc.stack
    const outbox = cdc.stack.cdcOutbox()
    const place = async () => {
      const [row] = await sql<[{ at: number }]>`select pg_wal_lsn_diff(pg_current_wal_lsn(),
        confirmed_flush_lsn)::float8 as at from pg_replication_slots where slot_name = ${slot}`
      return row.at
    }
    // The server counts from where the slot could begin again, which may be far behind what the connector has read.
    const isLittleKept = async () => {
      await sql`checkpoint`
      const [row] = await sql<[{ kept: number }]>`select pg_wal_lsn_diff(pg_current_wal_lsn(),
        restart_lsn)::float8 as kept from pg_replication_slots where slot_name = ${slot}`
      return row.kept < 4 * MB
    }
    await waitUntil(isLittleKept, { message: 'the slot keeps little', timeoutMs: 60_000 })
    connect.pause()
    await sql`alter system set max_slot_wal_keep_size = '64MB'`
    await sql`select pg_reload_conf()`
    try {
      await sql`create table ballast as select repeat(n::text, 100) as text from generate_series(1, 100) n`
      expect(await examine(outbox)).toEqual([])
      const before = await place()
      while ((await place()) < before + 48 * MB) {
        await sql`insert into ballast select repeat(md5(n::text), 30) from generate_series(1, 8000) n`
      }
      const [least, [finding], most] = [await place(), await examine(outbox), await place()]
      const told = /is (\d+) MB behind; after ([\d.]+) MB more of log the server gives the slot up/
      const [, behind, left] = told.exec(finding!.message)!.map(Number)
      expect(finding).toMatchObject({ check: 'cdc', severity: 'warning' })
      expect(behind).toBeGreaterThanOrEqual(Math.round(least / MB))
      expect(behind).toBeLessThanOrEqual(Math.round(most / MB))
      expect(left).toBeLessThan(behind!)
      expect((await outbox.health()).flags).toEqual([
        { flag: 'cdc', message: expect.stringMatching(told) as string },
      ])
    } finally {
      await sql`alter system reset max_slot_wal_keep_size`
      await sql`select pg_reload_conf()`
      connect.resume()
      await sql`drop table ballast`
    }
    await waitUntil(async () => (await place()) < MB, { message: 'caught up' })
  })

  it('lets the server delete its log while the outbox is quiet and other tables are busy', async () => {
    const { sql, slot } = cdc.stack
    await sql`create table busy (text text)`
    const confirmed = async () => {
      const [row] = await sql`select confirmed_flush_lsn >= ${at}::pg_lsn as is_past
        from pg_replication_slots where slot_name = ${slot}`
      return row?.['is_past'] === true
    }
    await sql`insert into busy select repeat(n::text, 100) from generate_series(1, 20000) n`
    const [{ at }] = await sql<[{ at: string }]>`select pg_current_wal_lsn()::text as at`
    expect(await waitUntil(confirmed, { message: 'the slot follows' })).toBe(true)
    await sql`drop table busy`
  })
})
