// The types of the inbox, checked by tsc as part of `npm run check`; vitest runs this file for its form only.
import type { ConsumeMessage } from 'amqplib'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import type { EachMessagePayload, KafkaMessage } from 'kafkajs'
import { expectTypeOf, it } from 'vitest'
import { createInbox, type Inbox, type InboxOutcome } from '../../src/inbox/inbox.ts'
import { defineEvents, event, type Outbox, type TransactionOf } from '../../src/index.ts'

declare const db: PostgresJsDatabase
declare const messages: [KafkaMessage, EachMessagePayload, ConsumeMessage]

const events = defineEvents({
  OrderPlaced: event<{ id: number; at: Date }>({ aggregate: 'order', key: (e) => e.id }),
  OrderCompleted: event<{ orderId: string }>({ aggregate: 'order', key: (e) => e.orderId }),
})

it('takes the messages of kafkajs and amqplib as they are, and plain ones', () => {
  const check = async (inbox: Inbox<PostgresJsDatabase>) => {
    for (const message of messages) await inbox.once(message, () => {})
    await inbox.once({ id: 'evt_123' }, () => {})
    await inbox.once({ id: '1', aggregateType: 'order', aggregateId: 5n, seq: 1 }, () => {})
    await inbox.once(
      { id: '1', aggregateType: 'order', aggregateId: '5', seq: 1, lane: 7n },
      () => {},
    )
    // @ts-expect-error a lane is a number
    await inbox.once({ id: '1', lane: {} }, () => {})
    // @ts-expect-error a message has an id of its own
    await inbox.once({ aggregateId: '1' }, () => {})
    // @ts-expect-error an id is text
    await inbox.once({ id: 5 }, () => {})
    // @ts-expect-error the work comes with it
    await inbox.once({ id: '5' })
  }
  expectTypeOf(check).toBeFunction()
})

it("hands the database's own transaction to the work, and answers what that answers", () => {
  const check = async (inbox: Inbox<PostgresJsDatabase>, outbox: Outbox<PostgresJsDatabase>) => {
    const outcome = await inbox.once({ id: '1' }, async (tx, received) => {
      expectTypeOf(tx).toEqualTypeOf<TransactionOf<PostgresJsDatabase>>()
      expectTypeOf(received.payload).toEqualTypeOf<unknown>()
      expectTypeOf(received.type).toEqualTypeOf<string | null>()
      expectTypeOf(received.lane).toEqualTypeOf<number | null>()
      return 5
    })
    expectTypeOf(outcome).toEqualTypeOf<InboxOutcome<number>>()
    // @ts-expect-error only what was handled has a result
    void outcome.result
    if (outcome.outcome === 'handled') expectTypeOf(outcome.result).toEqualTypeOf<number>()
    await outbox.withOutbox((tx) => inbox.onceIn(tx, { id: '1' }, () => {}))
  }
  expectTypeOf(check).toBeFunction()
})

it('types payloads by the catalog', () => {
  const check = async () => {
    const inbox = createInbox({ db, consumer: 'billing', events })
    await inbox.once({ id: '1' }, (_, received) => {
      if (received.type === 'OrderPlaced') {
        expectTypeOf(received.payload).toEqualTypeOf<{ id: number; at: string }>()
      }
      if (received.type === 'OrderCompleted') {
        expectTypeOf(received.payload).toEqualTypeOf<{ orderId: string }>()
      }
      // @ts-expect-error there is no such event
      if (received.type === 'OrderComplete') return
      // @ts-expect-error which one it is has not been asked yet
      void received.payload.orderId
    })
    // @ts-expect-error who handles has to be said
    createInbox({ db })
    // @ts-expect-error there is no such order
    createInbox({ db, consumer: 'billing', order: 'key' })
  }
  expectTypeOf(check).toBeFunction()
})
