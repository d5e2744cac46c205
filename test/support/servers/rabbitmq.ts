// The far end of RabbitMQ, past any proxy: declares the exchanges and queues of a test under names of its own, reads
// what arrived in them, and deletes them.
import { type Channel, connect } from 'amqplib'
import { startProxy, type TcpProxy } from './tcp-proxy.ts'
import { uniqueName } from '../doubles/unique-name.ts'

export type RabbitMessage = {
  readonly queue: string
  readonly key: string
  readonly id: string
  readonly value: string
  /** The value as it is. */
  readonly bytes: Buffer
  readonly headers: Record<string, string>
  /** Everything else that came with it. */
  readonly properties: Record<string, unknown>
}

export type Rabbit = {
  /** For declarations that only one test needs. */
  readonly channel: Channel
  /** A durable queue; its name is the routing key to it on the default exchange. */
  declareQueue(name?: string, settings?: Record<string, unknown>): Promise<string>
  /** A durable topic exchange, with a queue of the same name that gets everything. */
  declareExchange(name?: string): Promise<string>
  /** One that clients may not publish to: for RabbitMQ the same refusal as that of a missing permission. */
  declareForbiddenExchange(): Promise<string>
  /** Everything that has arrived in the queue so far, in its order there. */
  read(queue: string): Promise<readonly RabbitMessage[]>
  close(): Promise<void>
}

export async function openRabbit(url: string): Promise<Rabbit> {
  const connection = await connect(url)
  const channel = await connection.createChannel()
  const queues = new Set<string>()
  const exchanges = new Set<string>()
  const arrived = new Map<string, RabbitMessage[]>()

  async function declareQueue(name = uniqueName('queue'), settings: Record<string, unknown> = {}) {
    queues.add(name)
    await channel.assertQueue(name, { durable: true, arguments: settings })
    return name
  }

  return {
    channel,
    declareQueue,
    async declareExchange(name = uniqueName('exchange')) {
      exchanges.add(name)
      await channel.assertExchange(name, 'topic', { durable: true })
      await declareQueue(name)
      await channel.bindQueue(name, name, '#')
      return name
    },
    async declareForbiddenExchange() {
      const name = uniqueName('forbidden')
      exchanges.add(name)
      await channel.assertExchange(name, 'fanout', { internal: true })
      return name
    },
    async read(queue) {
      const messages = arrived.get(queue) ?? []
      arrived.set(queue, messages)
      for (;;) {
        const got = await channel.get(queue, { noAck: true })
        if (!got) return messages
        const { headers = {}, ...properties } = got.properties
        const texts = headers as Record<string, string>
        messages.push({
          queue,
          key: texts['aggregate-id'] ?? '',
          id: texts['event-id'] ?? '',
          value: got.content.toString(),
          bytes: got.content,
          headers: texts,
          properties,
        })
      }
    },
    async close() {
      for (const queue of queues) await channel.deleteQueue(queue)
      for (const exchange of exchanges) await channel.deleteExchange(exchange)
      await connection.close()
    },
  }
}

/** A proxy in front of the server, and the URL that leads through it. */
export async function proxyRabbit(url: string): Promise<{ proxy: TcpProxy; url: string }> {
  const through = new URL(url)
  const proxy = await startProxy({ host: through.hostname, port: Number(through.port || 5672) })
  through.host = `127.0.0.1:${proxy.port}`
  return { proxy, url: through.href }
}
