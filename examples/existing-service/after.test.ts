// The example, end to end: with the outbox, consumers get the messages that they got before, also when Kafka is away when an
// order is placed, and none of an order that was rolled back.
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openTopic, readAll } from '../../test/support/conformance/kafka-conformance.ts'
import { describeWithKafka, kafkaBrokers } from '../../test/support/fixture.ts'
import { createDatabase, type TestDatabase } from '../../test/support/servers/database.ts'
import type * as Database from './after/database.ts'
import type * as Messaging from './after/messaging.ts'
import type * as Orders from './after/orders.ts'

const here = new URL('.', import.meta.url)

it('has in its README the whole way from before to after', async () => {
  const diff = await promisify(execFile)('git', ['diff', '--no-index', 'before', 'after'], {
    cwd: here,
  }).catch(({ stdout }: { stdout: string }) => ({ stdout }))
  // Without the hashes, which change with each byte.
  const lines = diff.stdout.split('\n').filter((line) => !/^(diff|index) /.test(line))
  expect(await readFile(new URL('README.md', here), 'utf8')).toContain(lines.join('\n'))
})

describeWithKafka('an existing service', () => {
  let database: TestDatabase
  let topic: string
  beforeAll(async () => {
    database = await createDatabase()
    topic = await openTopic()
    process.env['DATABASE_URL'] = database.url
    process.env['KAFKA_BROKERS'] = kafkaBrokers().join(',')
    process.env['ORDERS_TOPIC'] = topic
  })
  afterAll(() => database.drop())

  it.each(['before', 'after'])('sends the same messages %s', async (side) => {
    const { pool } = (await import(`./${side}/database.ts`)) as typeof Database
    const messaging = (await import(`./${side}/messaging.ts`)) as typeof Messaging
    const { cancelOrder, placeOrder } = (await import(`./${side}/orders.ts`)) as typeof Orders
    const { createTables } = await import('./schema.ts')
    await createTables(pool)
    await messaging.connect()
    const orderId = await placeOrder('Ada', 42)
    await expect(placeOrder('Ada', 4_200)).rejects.toThrow(/customers_spent_check/)
    await cancelOrder(orderId)
    await messaging.disconnect()
    await pool.end()

    const sent = (await readAll(topic)).filter(({ key }) => key === String(orderId))
    expect(sent.map(({ value }) => JSON.parse(value!) as unknown)).toEqual([
      { type: 'OrderPlaced', orderId, customer: 'Ada', total: 42 },
      { type: 'OrderCancelled', orderId },
    ])
  })
})
