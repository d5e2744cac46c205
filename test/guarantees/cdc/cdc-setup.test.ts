// Promise: an outbox with relay: 'cdc' does not start where a connector would miss its events, and says what to do; the names of
// schema and table do not matter, nor whether the table has partitions.
import { drizzle } from 'drizzle-orm/postgres-js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createOutbox, type OutboxError, type OutboxOptions } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { cdcSql } from '../../../src/publishers/debezium/cdc.ts'
import { cdcNames } from '../../../src/store/outbox/cdc/names.ts'
import { createPublication } from '../../../src/store/outbox/cdc/script.ts'
import { describeWithConnector, describeWithFilters, useCdc } from '../../support/cdc/use-cdc.ts'
import { saveVaried } from '../../support/cdc/compared-relays.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { useFixture } from '../../support/fixture.ts'
import { openClient } from '../../support/servers/database.ts'
import { type PostgresServer, startPostgres } from '../../support/servers/postgres-server.ts'

const TABLE = { schema: 'public', name: 'outbox' }

describe('options', () => {
  const fixture = useFixture()
  const cdc = (options: Partial<OutboxOptions> = {}) =>
    createOutbox({ db: fixture.db, relay: 'cdc', logger: false, ...options } as never)

  it('refuses what a connector cannot do', async () => {
    const handlers = handlersPublisher({ handlers: {} })
    expect(() => cdc({ publisher: handlers })).toThrow('sends every event to Kafka')
    expect(() => cdc({ maxBacklog: 10 })).toThrow('maxBacklog counts events that wait')
    expect(() => cdc({ retention: 0 })).toThrow(
      "retention: 0 with relay: 'cdc' would keep no event",
    )
    const scheduled = cdc().withOutbox((_, emit) => emit(newEvent({ deliverAfter: '1h' })))
    await expect(scheduled).rejects.toMatchObject({ code: 'EVENT_INVALID' })
    expect(await fixture.rows()).toEqual([])
  })

  it('refuses names that Debezium cannot read', () => {
    expect(() => cdcSql({ table: 'a"b' })).toThrow('contains a double quote')
  })

  it('does not start on a server without a logical log', async () => {
    const refused = await cdc()
      .start()
      .catch((error: unknown) => error as OutboxError)
    expect(refused).toMatchObject({ code: 'CDC_NOT_READY' })
    const { message } = refused as OutboxError
    expect(message).toContain('set wal_level = logical and restart the server')
    expect(message).toContain('there is no publication')
  })
})

describeWithFilters('the database', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres({ settings: { wal_level: 'logical' } })
  })
  afterAll(() => server.stop())

  it('is checked at each start, part by part', async () => {
    const [sql, client] = [openClient(server.url), openClient(server.url)]
    const outbox = createOutbox({ db: drizzle(client), relay: 'cdc', logger: false })
    await outbox.migrate()
    const { publication, slot } = cdcNames('postgres', TABLE)
    const refusal = () =>
      outbox.start().then(
        () => 'started',
        ({ message }: Error) => message.replaceAll(/\s+/g, ' '),
      )
    const create = createPublication(TABLE).replaceAll(/\s+/g, ' ')
    const noSlot = `there is no replication slot ${slot}, so events that are saved now would not be sent; start the connector that aftercommit cdc-config prints; it creates the slot. If there was one before, send what was missed from the table first; see "a lost slot" in docs/guides/cdc.md`
    try {
      expect(await refusal()).toBe(`there is no publication "${publication}"; ${create} ${noSlot}`)
      await sql.unsafe(`create publication ${publication} for table outbox`)
      expect(await refusal()).toContain(
        'includes events that the outbox sends itself, and publishes more than inserts, and is not published through the root',
      )
      await sql.unsafe(`drop publication ${publication}; create publication ${publication}`)
      expect(await refusal()).toContain('does not include "public"."outbox"')
      await sql.unsafe(`drop publication ${publication}; ${createPublication(TABLE)}`)
      expect(await refusal()).toBe(noSlot)
      await sql`select pg_create_logical_replication_slot(${slot}, 'pgoutput')`
      expect(await refusal()).toBe('started')
      expect((await outbox.health()).flags).toEqual([
        { flag: 'cdc', message: expect.stringContaining('no connector reads') },
      ])
      await outbox.stop()
    } finally {
      await Promise.all([sql.end(), client.end()])
    }
  })
})

describeWithConnector('a partitioned table with unusual names', () => {
  const names = { schema: 'My Schema, x', table: 'out$box-*' }
  const cdc = useCdc({ partitioned: true, ...names })

  it('is relayed like any other', async () => {
    const { topic, reader } = await cdc.topic()
    const outbox = cdc.stack.cdcOutbox({ topic })
    await outbox.start()
    await saveVaried(outbox, 50, [topic])
    await reader.waitForCount(50)
    const ids = new Set(reader.messages.map(({ headers }) => headers['event-id']))
    expect(ids.size).toBe(50)
  })
})
