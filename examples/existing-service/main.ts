// npm run example:existing-service: the service with its outbox, and what its consumers see.
import { createTopic, readTopic } from '../../test/support/servers/topic-reader.ts'
import { uniqueName } from '../../test/support/doubles/unique-name.ts'
import { openDatabase, openKafka } from '../servers.ts'

const [database, kafka] = await Promise.all([openDatabase(), openKafka()])
const topic = uniqueName('orders')
await createTopic(kafka.brokers, topic)
process.env['DATABASE_URL'] = database.url
process.env['KAFKA_BROKERS'] = kafka.brokers.join(',')
process.env['ORDERS_TOPIC'] = topic
const { pool } = await import('./after/database.ts')
const { connect, disconnect } = await import('./after/messaging.ts')
const { cancelOrder, placeOrder } = await import('./after/orders.ts')
const { createTables } = await import('./schema.ts')

await createTables(pool)
await connect()
const id = await placeOrder('Ada', 42)
console.log(`order ${id} is placed`)
await placeOrder('Ada', 4_200).catch((error: Error) => console.log(`refused: ${error.message}`))
await cancelOrder(id)
console.log(`order ${id} is cancelled`)

const reader = await readTopic(kafka.brokers, topic)
for (const { value } of await reader.waitForCount(2)) console.log(`  consumers get ${value}`)
await reader.stop()
await disconnect()
await pool.end()
await Promise.all([database.stop(), kafka.stop()])
