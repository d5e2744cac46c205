// When each event was acknowledged, noted at the one place that all contenders share: their Kafka producer.
import { performance } from 'node:perf_hooks'
import { Kafka, logLevel, type Message, type Producer, type ProducerConfig } from 'kafkajs'

export class Acks {
  readonly #times = new Map<string, number>()
  readonly #waiters = new Set<{ count: number; resolve: () => void }>()
  lastAt = 0

  note(messages: readonly Message[]): void {
    const now = performance.now()
    this.lastAt = now
    for (const { headers } of messages) {
      const id = String(headers?.['bench-id'])
      // The first one counts: an event is there from then on.
      if (!this.#times.has(id)) this.#times.set(id, now)
    }
    for (const waiter of this.#waiters) {
      if (this.#times.size < waiter.count) continue
      this.#waiters.delete(waiter)
      waiter.resolve()
    }
  }

  get count(): number {
    return this.#times.size
  }

  timeOf(id: string): number | undefined {
    return this.#times.get(id)
  }

  async reach(count: number): Promise<void> {
    if (this.#times.size >= count) return
    await new Promise<void>((resolve) => this.#waiters.add({ count, resolve }))
  }
}

/** The same client for everybody. */
export function measuredKafka(brokers: readonly string[], acks: Acks): Pick<Kafka, 'producer'> {
  const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING })
  return {
    producer(config?: ProducerConfig): Producer {
      const producer = kafka.producer(config)
      return {
        ...producer,
        async send(record) {
          const metadata = await producer.send(record)
          acks.note(record.messages)
          return metadata
        },
        async sendBatch(batch) {
          const metadata = await producer.sendBatch(batch)
          for (const { messages } of batch.topicMessages ?? []) acks.note(messages)
          return metadata
        },
      }
    },
  }
}
