// Promise: with relay: 'cdc' consumers get the messages that they would get from the library itself, and an inbox handles
// each of them once. `npm run cdc` compares a hundred times as many.
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { expect, it } from 'vitest'
import { createInbox, type InboxEvent } from '../../../src/inbox/inbox.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { compareRelays, saveVaried, sendAgain } from '../../support/cdc/compared-relays.ts'
import { describeWithConnector, useCdc } from '../../support/cdc/use-cdc.ts'
import { kafkaBrokers, quietKafka } from '../../support/fixture.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { openClient } from '../../support/servers/database.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const EVENTS = 1_000

describeWithConnector('a connector beside the library', () => {
  const cdc = useCdc()

  it('sends topic, key, partition, value and headers as the library does', async () => {
    const topics = await Promise.all([cdc.topic(), cdc.topic(), cdc.topic()])
    const outbox = cdc.stack.cdcOutbox()
    await outbox.start()
    const names = topics.map(({ topic }) => topic)
    await saveVaried(outbox, EVENTS, names)
    const arrived = () => topics.reduce((sum, { reader }) => sum + reader.messages.length, 0)
    await waitUntil(() => arrived() === EVENTS, { message: () => `${arrived()} have arrived` })
    await sendAgain(cdc.stack.sql, cdc.stack.ownOutbox({ poller: false }))
    await Promise.all(topics.map(({ reader }) => reader.readToEnd()))
    expect(compareRelays(topics.map(({ reader }) => reader))).toEqual({
      pairs: EVENTS,
      unpaired: [],
      different: [],
    })
  })

  it('sends what a transaction of the application saved, and nothing that rolled back', async () => {
    const { topic, reader } = await cdc.topic()
    const outbox = cdc.stack.cdcOutbox({ topic })
    await outbox.start()
    const saved: string[] = []
    outbox.events.on('event:saved', ({ event }) => saved.push(event.id))
    const client = openClient(cdc.stack.server.url)
    try {
      await client.begin((tx) => outbox.emitIn(tx, newEvent({ payload: 'own' })))
      const failed = client.begin(async (tx) => {
        await outbox.emitIn(tx, newEvent({ payload: 'rolled back' }))
        throw new Error('no')
      })
      await expect(failed).rejects.toThrow('no')
      await expect(
        outbox.withOutbox((_, emit) => {
          emit(newEvent({ payload: 'rolled back too' }))
          throw new Error('neither')
        }),
      ).rejects.toThrow('neither')
      const id = await outbox.withOutbox((_, emit) => emit(newEvent({ payload: 'last' })))
      await reader.waitForCount(2)
      expect(new Set(reader.messages.map(({ value }) => value))).toEqual(
        new Set(['"last"', '"own"']),
      )
      expect(saved).toEqual([id])
      expect(await outbox.flush()).toMatchObject({ ok: true, untracked: 0 })
      expect(await outbox.drain()).toMatchObject({ delivered: 0 })
    } finally {
      await client.end()
    }
  })

  it('is handled once by an inbox, which finds the headers of the application in their one header', async () => {
    const { topic } = await cdc.topic()
    const outbox = cdc.stack.cdcOutbox({ topic })
    await outbox.start()
    const details = {
      correlationId: 'request-7',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      headers: { Tenant: 'acme', 'event-note': 'ä' },
      occurredAt: new Date('2026-01-02T03:04:05.120Z'),
    }
    const ids = await outbox.withOutbox((_, emit) =>
      Array.from({ length: 20 }, (_item, n) => emit(newEvent({ payload: { n }, ...details }))),
    )
    const client = openClient(cdc.stack.server.url)
    const db: PostgresJsDatabase = drizzle(client)
    const inbox = createInbox({ db, consumer: 'billing', order: 'aggregate' })
    await inbox.migrate()
    const consumer = quietKafka(kafkaBrokers()).consumer({ groupId: uniqueName('inbox') })
    const handled: InboxEvent[] = []
    const outcomes: string[] = []
    try {
      await consumer.connect()
      await consumer.subscribe({ topic, fromBeginning: true })
      await consumer.run({
        eachMessage: async (payload) => {
          for (const delivery of [payload, payload]) {
            const { outcome } = await inbox.once(delivery, (_, event) => void handled.push(event))
            outcomes.push(outcome)
          }
        },
      })
      await waitUntil(() => outcomes.length >= 40, { message: () => `${outcomes.length} of 40` })
    } finally {
      await consumer.disconnect()
      await inbox.stop()
      await client.end()
    }
    expect(handled.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
    expect(outcomes.filter((outcome) => outcome === 'handled')).toHaveLength(20)
    expect(handled[0]).toMatchObject({
      correlationId: details.correlationId,
      traceparent: details.traceparent,
      occurredAt: details.occurredAt,
      type: 'OrderCompleted',
    })
    expect(handled[0]?.headers).toMatchObject({ tenant: 'acme', 'event-note': 'ä' })
    expect(handled[0]?.headers).not.toHaveProperty('event-headers')
  })
})
