// Matches acks to events. An ack has a topic, a partition and the offset of its first message; the rest is counting.
import type { RecordMetadata } from 'kafkajs'
import type { Outgoing } from './batch.ts'
import { missingAck } from './errors.ts'
import type { KafkaPartitions } from './partitions.ts'
import type { PublishResult } from '../../event/publish-result.ts'

export function matchAcks(
  batch: readonly Outgoing[],
  acks: readonly RecordMetadata[],
  partitions: KafkaPartitions | null,
): PublishResult[] {
  const counted = new Map<RecordMetadata, bigint>()
  return batch.map(({ event, message }): PublishResult => {
    const { topic, aggregateId: key } = event
    const ofTopic = acks.filter((ack) => ack.topicName === topic)
    if (!partitions && ofTopic.length > 1) {
      return { ok: true, topic, key, partition: null, offset: null }
    }
    const partition = partitions?.of(message)
    const ack = partitions ? ofTopic.find((one) => one.partition === partition) : ofTopic[0]
    if (!ack) return missingAck(topic)
    const place = counted.get(ack) ?? 0n
    counted.set(ack, place + 1n)
    const offset = ack.baseOffset === undefined ? null : String(BigInt(ack.baseOffset) + place)
    return { ok: true, topic, key, partition: ack.partition, offset }
  })
}

/** A response that leaves a partition out says nothing about it, so its events go again. */
