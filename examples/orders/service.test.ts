// The example, end to end: the order service on a real Postgres, its handlers away for a while, and the oracle's verdict.
import { createOutbox } from 'aftercommit'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  connect,
  createDatabase,
  type TestConnection,
  type TestDatabase,
} from '../../test/support/servers/database.ts'
import { nextEvent, waitUntil } from '../../test/support/timing/wait-until.ts'
import { openHandlers } from './brokers.ts'
import { judge, readCommitted } from './oracle.ts'
import { createOrdersTable, openOrderService } from './order-service.ts'

let database: TestDatabase
let connection: TestConnection
beforeAll(async () => {
  database = await createDatabase()
  connection = connect(database.url)
})
afterAll(async () => {
  await connection.close()
  await database.drop()
})

it('loses, invents and reorders nothing while its handlers are away', async () => {
  const { client, db } = connection
  await createOrdersTable(db)
  const broker = openHandlers('as the test asks for')
  const outbox = createOutbox({
    db,
    publisher: broker.publisher,
    migrate: true,
    logger: false,
    threshold: '2s',
    publishTimeout: '1s',
    pollInterval: '100ms',
  })
  const service = openOrderService(outbox)
  await outbox.start()
  const loseBroker = async () => {
    await nextEvent(outbox.events, 'event:published')
    await broker.takeAway()
    await nextEvent(outbox.events, 'circuit:open')
    await broker.bringBack()
  }
  const over = new AbortController()
  const isEnough = async () =>
    service.units.rolledBack > 0 &&
    (await client`select from orders where status = 'paid' limit 1`).length > 0
  const loseBrokerAndEnd = async () => {
    await loseBroker()
    await waitUntil(isEnough, { message: 'an order was taken back, and one was paid' })
    over.abort()
  }
  const taking = service.takeOrders(60_000, over.signal)
  await Promise.all([loseBrokerAndEnd(), expect(taking).rejects.toThrow('aborted')])
  await service.settle()
  const isDrained = async () =>
    (await client`select from outbox where status <> 'published' limit 1`).length === 0
  await waitUntil(isDrained, { message: 'everything is published' })
  await outbox.stop()

  const verdict = judge(await readCommitted(database.url), await broker.readDelivered())
  expect(verdict).toMatchObject({ lost: 0, phantoms: 0, outOfOrder: 0 })
  expect(verdict.committed).toBeGreaterThan(0)
  expect(service.units.rolledBack).toBeGreaterThan(0)
})
