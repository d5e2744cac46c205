// Finds the partition of an event before it is sent. kafkajs gives the number of a topic's partitions only to its
// partitioner, so the partitioner stores it. Before the first event of a topic, the number is unknown.
import { createRequire } from 'node:module'
import type kafkajs from 'kafkajs'
import type { Message, PartitionerArgs, PartitionMetadata } from 'kafkajs'
import { groupBy } from '../../runtime/group-by.ts'

interface Addressed {
  readonly event: { readonly topic: string }
  readonly message: Message
}

export class KafkaPartitions {
  readonly #choose: (args: PartitionerArgs) => number
  readonly #metadata = new Map<string, PartitionMetadata[]>()

  constructor() {
    // Loaded here and not at the top: with `producer` given, kafkajs need not be installed.
    const required: unknown = createRequire(import.meta.url)('kafkajs')
    const { Partitioners } = required as Pick<typeof kafkajs, 'Partitioners'>
    this.#choose = Partitioners.DefaultPartitioner()
  }

  /** Notes the partition on each message, so that its ack can be found. */
  readonly createPartitioner = () => (args: PartitionerArgs) => {
    this.#metadata.set(args.topic, args.partitionMetadata)
    return (args.message.partition ??= this.#choose(args))
  }

  knows(topic: string): boolean {
    return this.#metadata.has(topic)
  }

  /** Groups messages by partition and sets it on each, so that kafkajs uses it. */
  divide<T extends Addressed>(batch: readonly T[]): T[][] {
    return [...groupBy(batch, (one) => this.#address(one)).values()]
  }

  #address({ event: { topic }, message }: Addressed): number {
    const partitionMetadata = this.#metadata.get(topic)
    // The topic's first event failed before kafkajs learnt the partitions, so there is nothing to separate by.
    if (!partitionMetadata) return -1
    message.partition = this.#choose({ topic, partitionMetadata, message })
    return message.partition
  }
}
