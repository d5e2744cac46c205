// Promise: events that a connector missed because its slot was lost are in the table, nothing skips them silently, and they go
// out in order by the steps of docs/guides/cdc.md, while the application goes on saving.
import { expect, it } from 'vitest'
import { isFromConnector } from '../../support/cdc/compared-relays.ts'
import { describeWithConnector, useCdc } from '../../support/cdc/use-cdc.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { firstArrivals, startLoad } from '../../support/load.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const UNITS = 40

/** As in the guide. */
const SEND_AGAIN = `update outbox set status = 'pending', published_at = null, available_at = clock_timestamp()
  where status = 'published' and cdc_occurred_at is not null and created_at > $1`

describeWithConnector('a lost slot', () => {
  const cdc = useCdc()

  async function ask(method: 'PUT' | 'DELETE', path: string): Promise<void> {
    const response = await fetch(`${cdc.stack.connect.url}/${path}`, { method })
    if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`)
  }

  async function connectorState(): Promise<string | undefined> {
    const response = await fetch(`${cdc.stack.connect.url}/status`)
    return ((await response.json()) as { connector: { state: string } }).connector.state
  }

  it('stops the connector, and what it missed goes out in order', {
    timeout: 180_000,
  }, async () => {
    const { topic, reader } = await cdc.topic()
    const { connect, sql, slot } = cdc.stack
    const outbox = cdc.stack.cdcOutbox({ topic })
    await outbox.start()
    const load = startLoad([outbox], uniqueName('lost'))
    await load.commits(UNITS)
    await reader.waitForCount(1)
    // From well before the connector stopped: what it had not read by then was lost too. What it had read goes out again.
    const [{ at }] = await sql<[{ at: Date }]>`select clock_timestamp() - interval '10 s' as at`
    await connect.stop()
    await waitUntil(async () => !(await cdc.stack.isSlotActive()), { message: 'slot released' })
    await load.commits(UNITS)
    await sql`select pg_drop_replication_slot(${slot})`
    await load.commits(UNITS)

    // The connector knows that its place is gone. It neither makes a new slot nor goes on behind the gap.
    await expect(connect.start()).rejects.toThrow('is no longer available on the server')
    expect((await outbox.health()).flags).toEqual([
      { flag: 'cdc', message: expect.stringContaining(`no replication slot ${slot}`) },
    ])

    await ask('PUT', 'stop')
    await waitUntil(async () => (await connectorState()) === 'STOPPED', { message: 'it stops' })
    await ask('DELETE', 'offsets')
    await sql`select pg_create_logical_replication_slot(${slot}, 'pgoutput')`
    await load.commits(UNITS)
    await sql.unsafe(SEND_AGAIN, [at])
    const own = cdc.stack.ownOutbox()
    await own.drain()
    expect((await own.stats()).pending.count).toBe(0)
    await ask('PUT', 'resume')
    await waitUntil(() => cdc.stack.isSlotActive(), { message: 'it reads the slot' })
    await load.commits(UNITS)
    await load.stop()

    const ids = () => new Set(reader.messages.map(({ headers }) => headers['event-id'])).size
    const count = [...load.committed.values()].flat().length
    await waitUntil(() => ids() === count, { message: () => `${ids()} of ${count} have arrived` })
    expect(firstArrivals(reader.messages)).toEqual(load.committed)
    expect(reader.messages.some((message) => !isFromConnector(message))).toBe(true)
    expect((await outbox.health()).flags).toEqual([])
  })
})
