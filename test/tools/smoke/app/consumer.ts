// Compiled against the installed package by each supported compiler, with its declarations checked in full.
import { defineConfig } from 'aftercommit/config'
import { dashboard, toNodeListener } from 'aftercommit/dashboard'
import { createOutbox, defineEvents, event, type Outbox } from 'aftercommit'
import { handlersPublisher } from 'aftercommit/handlers'
import { cdcConnector } from 'aftercommit/cdc'
import { driverChecks } from 'aftercommit/driver-conformance'
import { createInbox } from 'aftercommit/inbox'
import { kafkaPublisher } from 'aftercommit/kafka'
import { nodePostgres } from 'aftercommit/node-postgres'
import { otel } from 'aftercommit/otel'
import { postgresJs } from 'aftercommit/postgres-js'
import { publisherChecks, type PublisherUnderTest } from 'aftercommit/publisher-conformance'
import { prometheusMetrics } from 'aftercommit/prometheus'
import { rabbitmqPublisher } from 'aftercommit/rabbitmq'
import { drain, recordingPublisher, rolledBack } from 'aftercommit/testing'
import { Kafka } from 'kafkajs'
import pg from 'pg'
import postgres from 'postgres'

const events = defineEvents({
  OrderPlaced: event<{ orderId: string; total: number }>({
    aggregate: 'order',
    key: ({ orderId }) => orderId,
  }),
})
const publisher = handlersPublisher({ handlers: {} })
const sql = postgres('postgres://localhost/shop')
const outbox = createOutbox({ db: postgresJs(sql), publisher, events, telemetry: otel() })
export const { handler } = prometheusMetrics(outbox)
export const page = dashboard(outbox, { authorize: () => ({ by: 'ada', mayAct: false }) })
export const listener = toNodeListener(page)

export async function place(orderId: string): Promise<string> {
  return await outbox.withOutbox(async (tx, emit) => {
    await tx`insert into orders values (${orderId})`
    return emit('OrderPlaced', { orderId, total: 1 })
  })
}

export async function placeInOwn(orderId: string): Promise<string> {
  await outbox.db.begin((tx) => tx`insert into orders values (${orderId})`)
  return await sql.begin((tx) => outbox.emitIn(tx, 'OrderPlaced', { orderId, total: 1 }))
}

export const brokers = [
  kafkaPublisher({ kafka: new Kafka({ brokers: ['localhost:9092'] }) }),
  rabbitmqPublisher({ url: 'amqp://localhost' }),
]
export const connector: object = cdcConnector
declare const tested: PublisherUnderTest
export const checks = async () => {
  for (const { run } of publisherChecks) await run(() => tested)
  return driverChecks.map(({ name }) => name)
}

export const pool = new pg.Pool()
export const plain: Outbox<ReturnType<typeof nodePostgres>> = createOutbox({
  db: nodePostgres(pool),
  publisher,
})
export const inbox = createInbox({ db: nodePostgres(pool), consumer: 'billing', events })

export async function answer(): Promise<string[]> {
  const { left } = await outbox.flush({ timeout: '3s' })
  return left.map(({ event, reason }) => `${event.id} ${reason}`)
}

export const test = rolledBack(postgresJs(sql), async (db, tx) => {
  const recording = recordingPublisher()
  await tx`insert into orders values (1)`
  await drain(createOutbox({ db, publisher: recording, events }))
  return recording.published.length
})

// @ts-expect-error the catalog has no such event
outbox.emit('OrderPlace', {})

export default defineConfig({
  outbox: (relay) => createOutbox({ db: postgresJs(sql), publisher, events, ...relay }),
})
