// The producers of kafkajs that the publisher makes: with which settings, and why one does not connect.
import type { Kafka, Producer, ProducerConfig } from 'kafkajs'
import { OutboxOptionsError } from '../../errors.ts'
import type { KafkaPartitions } from './partitions.ts'
import type { Connectable } from './producer-lines.ts'
import { SocketWatch } from './socket-watch.ts'

class KafkajsLine implements Connectable {
  readonly producer: Producer
  readonly #sockets = new SocketWatch()

  constructor(producer: Producer) {
    this.producer = producer
  }

  get connectionError(): Error | null {
    return this.#sockets.error
  }

  async connect(): Promise<void> {
    await this.#sockets.during(() => this.producer.connect())
  }

  disconnect(): Promise<void> {
    return this.producer.disconnect()
  }
}

/** The first producer is made at once: a client that takes other settings fails here, not at the first event. */
export function lineMaker(
  kafka: Pick<Kafka, 'producer'>,
  retries: number,
  partitions: KafkaPartitions,
): () => KafkajsLine {
  const config = producerConfig(retries, partitions)
  const make = () => new KafkajsLine(kafka.producer(config))
  let first: KafkajsLine | null
  try {
    first = make()
  } catch {
    throw new OutboxOptionsError(
      'kafka must be a kafkajs client, but this one does not accept the settings of a kafkajs producer; with @confluentinc/kafka-javascript, connect a producer and pass it as producer',
    )
  }
  return () => {
    const line = first ?? make()
    first = null
    return line
  }
}

function producerConfig(retries: number, partitions: KafkaPartitions): ProducerConfig {
  const retry = { retries, initialRetryTime: 100, maxRetryTime: 1_000 }
  return { idempotent: false, retry, createPartitioner: partitions.createPartitioner }
}
