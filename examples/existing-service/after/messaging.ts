// Kafka, through kafkajs and an outbox.
import { createOutbox } from 'aftercommit'
import { kafkaPublisher } from 'aftercommit/kafka'
import { nodePostgres } from 'aftercommit/node-postgres'
import { Kafka } from 'kafkajs'
import type { PoolClient } from 'pg'
import { pool } from './database.ts'

const topic = process.env['ORDERS_TOPIC'] ?? 'orders'
const brokers = process.env['KAFKA_BROKERS']!.split(',')
const kafka = new Kafka({ clientId: 'shop', brokers })
const publisher = kafkaPublisher({ kafka })
const outbox = createOutbox({ db: nodePostgres(pool), publisher, topic, migrate: true })

export interface Message {
  readonly type: string
  readonly orderId: number
  readonly customer?: string
  readonly total?: number
}

export const connect = () => outbox.start()
export const disconnect = () => outbox.stop()

export async function publish(tx: PoolClient, message: Message): Promise<void> {
  const { type, orderId } = message
  await outbox.emitIn(tx, { type, aggregateType: 'order', aggregateId: orderId, payload: message })
}
