// Promise: an outbox with relay: 'cdc' does not start where a connector would miss its events, nor does it save there without
// start(), and says what to do; the names of schema and table do not matter, nor whether the table has partitions.
import { drizzle } from 'drizzle-orm/postgres-js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sourceOf } from '../../../src/dashboard/source.ts'
import { createOutbox, type OutboxError, type OutboxOptions } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { cdcSql } from '../../../src/publishers/debezium/cdc.ts'
import { cdcNames } from '../../../src/store/outbox/cdc/names.ts'
import { createPublication } from '../../../src/store/outbox/cdc/script.ts'
import { diagnose } from '../../../src/upkeep/doctor/doctor.ts'
import { doctorParts } from '../../../src/upkeep/doctor/parts.ts'
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
      await sql.unsafe(`drop publication ${publication}; drop table outbox cascade`)
      await sql`select pg_drop_replication_slot(${slot})`
    } finally {
      await Promise.all([sql.end(), client.end()])
    }
  })

  it('is prepared for a second table with the same role', async () => {
    const sql = openClient(server.url)
    const user = `the "role" of d'Artagnan`
    try {
      await sql`create table first_one (cdc_occurred_at text)`
      await sql`create table second_one (cdc_occurred_at text)`
      await sql.unsafe(cdcSql({ table: 'first_one', user }))
      await sql.unsafe(cdcSql({ table: 'second_one', user }))
      const [role] =
        await sql`select rolcanlogin, rolreplication from pg_roles where rolname = ${user}`
      expect(role).toEqual({ rolcanlogin: true, rolreplication: true })
    } finally {
      await sql.end()
    }
  })

  it('is checked before the first save too, in the transaction of the save', async () => {
    const [sql, client] = [openClient(server.url), openClient(server.url, { max: 1 })]
    const statements: string[] = []
    client.options.debug = (_, text) => void statements.push(text)
    const lookedAt = () =>
      statements.splice(0).filter((text) => text.includes('look at publication and slot')).length
    const names = { schema: 'public', table: 'unstarted' }
    const write = () => '{"written":true}'
    const options = { db: drizzle(client), ...names, payloads: { write }, logger: false } as const
    const outbox = createOutbox({ ...options, relay: 'cdc' })
    await outbox.migrate()
    const unit = () => outbox.withOutbox((_, emit) => void emit(newEvent()))
    const own = () => client.begin((tx) => outbox.emitIn(tx, newEvent()))
    const count = async () => (await sql`select from unstarted`).length
    const table = { schema: 'public', name: names.table }
    const { slot } = cdcNames('postgres', table)
    try {
      for (const save of [unit, own]) {
        await expect(save()).rejects.toMatchObject({
          code: 'CDC_NOT_READY',
          message: expect.stringContaining('there is no publication') as string,
        })
      }
      expect(await count()).toBe(0)
      expect(lookedAt()).toBe(2)
      await sql.unsafe(createPublication(table))
      await expect(unit()).rejects.toMatchObject({ code: 'CDC_NOT_READY' })
      await sql`select pg_create_logical_replication_slot(${slot}, 'pgoutput')`
      await outbox.withOutbox(async () => {})
      expect(lookedAt()).toBe(1)
      await own()
      await unit()
      expect(lookedAt()).toBe(1)
      const saved = { status: 'published', payload: write() }
      const rows = await sql`select status, payload::text from unstarted`
      expect(rows).toEqual([saved, saved])

      const findings = async () => {
        const settings = { oldTransactionMs: 3_600_000, showQueries: false }
        const diagnosis = await diagnose(doctorParts(sourceOf(outbox), settings))
        return diagnosis.findings.filter(({ check }) => check === 'cdc')
      }
      await sql`select pg_drop_replication_slot(${slot})`
      await sql.unsafe(`drop publication ${cdcNames('postgres', table).publication}`)
      // No instance is listed, but the newest event was saved for a connector.
      expect((await findings()).map(({ severity }) => severity)).toEqual(['error', 'error'])
      const relayed = createOutbox({ ...options, publisher: handlersPublisher({ handlers: {} }) })
      await relayed.withOutbox((_, emit) => void emit(newEvent()))
      expect(await findings()).toEqual([])
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
