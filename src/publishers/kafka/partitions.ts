// Which partition an event goes to, known before it is sent. kafkajs tells the number of a topic's
// partitions only to its partitioner, so the partitioner remembers it; until then nobody knows.
import { createRequire } from 'node:module'
import type kafkajs from 'kafkajs'
import type { Message, PartitionerArgs, PartitionMetadata } from 'kafkajs'
import { groupBy } from '../group-by.ts'

interface Addressed {
  readonly event: { readonly topic: string }
  readonly message: Message
}

export class KafkaPartitions {
  readonly #choose: (args: PartitionerArgs) => number
  readonly #metadata = new Map<string, PartitionMetadata[]>()
  readonly #chosen = new WeakMap<Message, number>()

  constructor() {
    // Loaded here, not on top: with `producer` given kafkajs need not be installed.
    const required: unknown = createRequire(import.meta.url)('kafkajs')
    const { Partitioners } = required as Pick<typeof kafkajs, 'Partitioners'>
    this.#choose = Partitioners.DefaultPartitioner()
  }

  readonly createPartitioner = () => (args: PartitionerArgs) => {
    this.#metadata.set(args.topic, args.partitionMetadata)
    const partition = args.message.partition ?? this.#choose(args)
    this.#chosen.set(args.message, partition)
    return partition
  }

  knows(topic: string): boolean {
    return this.#metadata.has(topic)
  }

  /** The partition that kafkajs was last given for the message. */
  of(message: Message): number | undefined {
    return this.#chosen.get(message)
  }

  /** Groups by partition, and tells kafkajs so. */
  divide<T extends Addressed>(batch: readonly T[]): T[][] {
    return [...groupBy(batch, (one) => this.#address(one)).values()]
  }

  #address({ event: { topic }, message }: Addressed): number {
    const partitionMetadata = this.#metadata.get(topic)
    // Its first event failed before kafkajs had learnt anything: then there is nothing to keep apart.
    if (!partitionMetadata) return -1
    message.partition = this.#choose({ topic, partitionMetadata, message })
    return message.partition
  }
}
