// Kafka, through kafkajs.
import { Kafka } from 'kafkajs'

const topic = process.env['ORDERS_TOPIC'] ?? 'orders'
const brokers = process.env['KAFKA_BROKERS']!.split(',')
const kafka = new Kafka({ clientId: 'shop', brokers })
const producer = kafka.producer()

export interface Message {
  readonly type: string
  readonly orderId: number
  readonly customer?: string
  readonly total?: number
}

export const connect = () => producer.connect()
export const disconnect = () => producer.disconnect()

export async function publish(message: Message): Promise<void> {
  const messages = [{ key: String(message.orderId), value: JSON.stringify(message) }]
  await producer.send({ topic, acks: -1, messages })
}
